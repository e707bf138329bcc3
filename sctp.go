package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
	"github.com/goiwarp/iwarp/transport/sctpudp"
)

// A sessionClient opens sessions over one of the two back ends of SCTP.
type sessionClient interface {
	Open(ctx context.Context, addr string) (sctp.Stream, error)
	Close()
}

// A sessionListener takes them.
type sessionListener interface {
	Addr() net.Addr
	Accept() (*sctp.Request, error)
	Close()
	Over() bool
	End()
}

// overUDP is how this RNIC uses SCTP over UDP.
func (r *RNIC) overUDP() sctpudp.Config {
	return sctpudp.Config{PeerTimeout: r.cfg.PeerTimeout, ListenPacket: r.cfg.ListenPacket}
}

// overIP is how this RNIC uses the SCTP of the kernel.
func (r *RNIC) overIP() sctpkernel.Config {
	return sctpkernel.Config{PeerTimeout: r.cfg.PeerTimeout}
}

// sessionClients are the back ends by their networks.
func (r *RNIC) sessionClients() map[string]sessionClient {
	return map[string]sessionClient{
		networkSCTP:    sctpkernel.NewClient(r.overIP()),
		networkSCTPUDP: sctpudp.NewClient(r.overUDP()),
	}
}

// listenForSessions opens a listener of the network's back end.
func (r *RNIC) listenForSessions(ctx context.Context, network, addr string, backlog int) (sessionListener, error) {
	if network == networkSCTP {
		return sctpkernel.Listen(ctx, r.overIP(), addr, backlog)
	}
	return sctpudp.Listen(ctx, r.overUDP(), addr, backlog)
}

// kernelError adds to an error what to do where the kernel has no SCTP.
func kernelError(err error) error {
	if errors.Is(err, sctpkernel.ErrNoSCTP) {
		return &reworded{plain(err) + "; network \"sctp+udp\" is SCTP in user space", errors.Join(ErrUnsupported, err)}
	}
	return err
}

// dialSession makes one attempt over SCTP. Without plain an enhanced session of RFC 6581
// is asked for.
func (qp *QP) dialSession(ctx context.Context, network, addr string, plain bool) error {
	if qp.cfg.TLS != nil || qp.cfg.Trace != nil {
		return fmt.Errorf("%w: TLS, and Trace, over SCTP", ErrUnsupported)
	}
	s, err := qp.rnic.sctp[network].Open(ctx, addr)
	if err != nil {
		return kernelError(err)
	}
	if err := qp.setup(ctx); err != nil {
		s.Release(true)
		return err
	}
	ctx, done, err := qp.rnic.exchange(ctx)
	if err != nil {
		s.Release(true)
		return err
	}
	defer done()
	o := qp.sessionOptions()
	o.Plain = plain
	conn, terms, err := sctp.Connect(ctx, s, o, qp.cfg.IRD, qp.cfg.ORD, qp.offer(true))
	if err != nil {
		return setupError(endedBy(ctx, err))
	}
	return qp.establish(ctx, conn, sessionTerms(terms), rtrOf(terms.RTR))
}

func (qp *QP) sessionOptions() sctp.Options {
	m := qp.cfg.MPA
	return sctp.Options{
		Plain: m.Revision == mpa.Revision1, FixedDepths: m.FixedDepths, StrictDepths: m.StrictDepths, MaxULPDU: m.MaxULPDU,
	}
}

// sessionTerms says the terms of a session in the words of MPA, which have more in them.
func sessionTerms(t *sctp.Terms) *mpa.Terms {
	return &mpa.Terms{
		IRD: t.IRD, ORD: t.ORD, PeerIRD: t.PeerIRD, PeerORD: t.PeerORD, RTR: t.RTR,
		PeerPrivateData: t.PeerPrivateData, Fault: t.Fault,
	}
}

// sessions are those that peers ask for over SCTP.
type sessions struct {
	sessionListener
	rnic *RNIC
	cfg  ListenConfig
}

func (r *RNIC) sessions(ctx context.Context, network, addr string, cfg ListenConfig) (source, error) {
	if cfg.TLS != nil {
		return nil, fmt.Errorf("%w: TLS over SCTP", ErrUnsupported)
	}
	l, err := r.listenForSessions(ctx, network, addr, cfg.MaxHalfOpen)
	if err != nil {
		return nil, kernelError(err)
	}
	src := &sessions{sessionListener: l, rnic: r, cfg: cfg}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessionsOf = append(slices.DeleteFunc(r.sessionsOf, (*sessions).over), src)
	return src, nil
}

func (s *sessions) Close() error {
	s.sessionListener.Close()
	return nil
}

// over tells whether nothing is left of a listener that was closed.
func (s *sessions) over() bool { return s.Over() }

func (s *sessions) complete() bool { return true }

func (s *sessions) accept() (setup, error) {
	r, err := s.Accept()
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, release func()) (*ConnRequest, error) {
		o := sessionOffer{r}
		if err := s.rnic.watch(o); err != nil {
			_ = o.Close()
			release()
			return nil, err
		}
		return &ConnRequest{rnic: s.rnic, offer: o, release: release, timeout: s.cfg.SetupTimeout}, nil
	}, nil
}

// A sessionOffer is an Initiate that came over SCTP.
type sessionOffer struct{ *sctp.Request }

func (o sessionOffer) accept(ctx context.Context, qp *QP) error {
	if qp.cfg.Trace != nil {
		return fmt.Errorf("%w: Trace over SCTP", ErrUnsupported)
	}
	conn, terms, err := o.Accept(qp.sessionOptions(), qp.cfg.IRD, qp.cfg.ORD, qp.offer(offersCommit(o.PrivateData())))
	if err != nil {
		return err
	}
	return qp.establish(ctx, conn, sessionTerms(terms), rdmap.RTRNone)
}

func (o sessionOffer) reject(_ context.Context, ird, ord int, private []byte) error {
	return o.Reject(ird, ord, private)
}

func (o sessionOffer) Close() error {
	o.Request.Close()
	return nil
}
