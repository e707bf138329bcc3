package iwarp

import (
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A source is where the connections of a listener come from.
type source interface {
	Addr() net.Addr
	Close() error
	// accept waits for the next connection. What it returns goes on with its set-up.
	accept() (setup, error)
	// complete tells that what accept returns has asked already, so that it is never given
	// up for another one. It waits where it is until there is a place for it.
	complete() bool
}

// A setup reads the Request of a connection. It calls release once, when the connection
// is no longer in set-up.
type setup func(ctx context.Context, release func()) (*ConnRequest, error)

// An offer is what an initiator has asked for, over whatever lower layer.
type offer interface {
	PrivateData() []byte
	PeerIRD() int
	PeerORD() int
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// accept takes the QP, whose Setup has run, to RTS.
	accept(ctx context.Context, qp *QP) error
	reject(ctx context.Context, ird, ord int, private []byte) error
	Close() error
}

const (
	networkSCTP    = "sctp"
	networkSCTPUDP = "sctp+udp"
)

// source listens.
func (r *RNIC) source(ctx context.Context, network, addr string, cfg ListenConfig) (source, error) {
	if network == networkSCTP || network == networkSCTPUDP {
		return r.sessions(ctx, network, addr, cfg)
	}
	l, err := transport.Listen(ctx, network, addr, transport.Options{})
	if err != nil {
		return nil, err
	}
	return &connections{Listener: l, rnic: r, cfg: cfg}, nil
}

// connections are those of a net.Listener.
type connections struct {
	net.Listener
	rnic *RNIC
	cfg  ListenConfig
}

func (s *connections) complete() bool { return false }

func (s *connections) accept() (setup, error) {
	c, err := s.Accept()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, release func()) (*ConnRequest, error) {
		cr, err := s.rnic.request(ctx, c, s.cfg, release)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", c.RemoteAddr(), err)
		}
		return cr, nil
	}, nil
}

// request reads a Request. release is called once, when the connection is no
// longer in set-up.
func (r *RNIC) request(ctx context.Context, c net.Conn, cfg ListenConfig, release func()) (*ConnRequest, error) {
	o := &mpaOffer{Conn: c}
	cr := &ConnRequest{rnic: r, offer: o, release: release, timeout: cfg.SetupTimeout}
	if err := r.watch(o); err != nil {
		_ = c.Close()
		release()
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.SetupTimeout, errSetupTimeout)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if err := r.readRequest(ctx, o, cfg, func() { giveUp(errNoProgress) }); err != nil {
		cr.close()
		said := setUp{missing: "all of an MPA Request"}
		if cfg.TLS == nil {
			said.tls = "ListenConfig.TLS"
		}
		return nil, clause{r.failure(err, said)}
	}
	return cr, nil
}

// readRequest reads what the peer of o asks for. giveUp ends ctx if nothing comes for
// too long.
func (r *RNIC) readRequest(ctx context.Context, o *mpaOffer, cfg ListenConfig, giveUp func()) error {
	c := o.Conn
	if err := r.bindPeerTimeout(c); err != nil {
		return err
	}
	p := progresses(c, cfg.ProgressTimeout, giveUp)
	defer p.settled()
	reads := net.Conn(p)
	if cfg.TLS != nil {
		var err error
		if reads, err = transport.TLSServer(ctx, p, cfg.TLS); err != nil {
			return tlsError(err)
		}
		c = reads
	}
	var err error
	if o.Request, err = mpa.ReadRequest(ctx, transport.NewStream(reads, nil)); err != nil {
		return err
	}
	// What has read the Request has nothing more of the connection.
	o.Trace(func(transport.Stream, []byte) transport.Stream { return r.stream(c) })
	return nil
}

// An mpaOffer is a Request that came over a byte stream.
type mpaOffer struct {
	net.Conn
	*mpa.Request
}

func (o *mpaOffer) accept(ctx context.Context, qp *QP) error {
	o.Trace(func(s transport.Stream, request []byte) transport.Stream {
		return qp.traced(s, transport.TapOptions{Passive: true, Received: request})
	})
	conn, terms, err := o.Accept(ctx, qp.cfg.MPA.options(), qp.cfg.IRD, qp.cfg.ORD, qp.offer(offersCommit(o.PrivateData())))
	if err != nil {
		return err
	}
	return qp.establish(ctx, conn, terms, rdmap.RTRNone)
}

func (o *mpaOffer) reject(ctx context.Context, ird, ord int, private []byte) error {
	return o.Reject(ctx, ird, ord, private)
}
