package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A ConnectFunc connects two queue pairs over a layer that is not a network of RNIC.Dial.
type ConnectFunc func(cfg Config, conn int, rnics [2]*iwarp.RNIC, qcs [2]*iwarp.QPConfig) ([2]*iwarp.QP, error)

// ErrNotHere says that a Config cannot be used on this machine, or in this program.
var ErrNotHere = errors.New("cannot be used here")

// open makes the hosts and the connections.
func (x *run) open() error {
	if x.damagesDatagrams() && len(x.plan.Conns) > 1 {
		return fmt.Errorf("connections that share the sockets whose datagrams are damaged: %w", ErrNotHere)
	}
	x.ends, x.byQP = make(map[End]*liveEnd), make(map[*iwarp.QP]*liveEnd)
	x.cuts, x.damaged, x.mems = make(map[int]*damage.Line), make(map[int]bool), make(map[*Mem]*liveMem)
	x.regions, x.sinks = make(map[*Region]*liveRegion), make(map[*Mem]*liveRegion)
	x.slots = make(map[*Receive]*liveMem)
	if x.damagesDatagrams() {
		x.sockets = damage.NewSockets(x.listenPacket)
	}
	for i := range x.hosts {
		h, err := x.newHost(i)
		x.hosts[i] = h
		if err != nil {
			return err
		}
	}
	for i := range x.plan.Conns {
		if err := x.connect(i); err != nil {
			return err
		}
	}
	return nil
}

// damagesDatagrams reports whether a fault damages datagrams. The sockets of shared hosts are never damaged.
func (x *run) damagesDatagrams() bool {
	return x.cfg.Network == SCTPUDP && x.shared == nil && slices.ContainsFunc(x.plan.Conns, func(c *ConnPlan) bool {
		return c.Fault != nil && c.Fault.Verb == Cut && slices.Contains(damages, c.Fault.how())
	})
}

// socketsOf returns the function by which a host opens its sockets.
func (x *run) socketsOf(side int) damage.ListenFunc {
	switch {
	case x.cfg.Network != SCTPUDP:
		return nil
	case x.sockets != nil:
		return x.sockets.Listen(side)
	case x.cfg.Shuffle != 0:
		return shuffled(x.cfg.Shuffle)
	}
	return x.listenPacket
}

func (x *run) newHost(side int) (*host, error) {
	cfg := &iwarp.Config{PlainIO: x.cfg.Plain, CloseTimeout: longWait, ListenPacket: x.socketsOf(side)}
	h := &host{}
	var err error
	if x.shared != nil {
		h.shared = x.shared[side]
		h.rnic = h.shared.RNIC
	} else {
		if h.rnic, err = iwarp.Open(cfg); err != nil {
			return nil, err
		}
		h.events = h.rnic.Events()
	}
	if h.pd, err = h.rnic.AllocPD(); err != nil {
		return h, err
	}
	if x.plan.Program.SRQ && side == 1 {
		if h.srq, err = h.pd.CreateSRQ(inboxDepth); err != nil {
			return h, err
		}
	}
	if x.cfg.SameCQ {
		depth := inboxDepth * len(x.plan.Conns)
		if h.sendCQ, err = h.rnic.CreateCQ(depth); err != nil {
			return h, err
		}
		h.recvCQ, err = h.rnic.CreateCQ(depth)
	}
	return h, err
}

// newWindow makes a window of n octets for one queue pair, or none if n is 0. Queue pairs do not share a window: while a
// message waits for a receive, the Reads of its queue pair do not complete, and would hold back the Reads of the others.
func (h *host) newWindow(n int) *iwarp.Solicitor {
	if n == 0 {
		return nil
	}
	s := iwarp.NewSolicitor(solicit.Config{Fixed: int64(n)})
	h.windows = append(h.windows, s)
	return s
}

// queuePair returns the configuration of one end.
func (x *run) queuePair(end End) *iwarp.QPConfig {
	h := x.hosts[end.Side]
	c := &iwarp.QPConfig{
		PD: h.pd, SendCQ: h.sendCQ, RecvCQ: h.recvCQ, SRQ: h.srq, Solicitor: h.newWindow(x.cfg.Window), SendDepth: queueDepth, RecvDepth: inboxDepth,
		IRD: x.cfg.Reads, ORD: x.cfg.Reads, RNRWait: longWait, Commit: &iwarp.CommitOptions{},
	}
	if x.plan.Conns[end.Conn].Short[end.Side] {
		c.RNRWait = shortWait
	}
	c.MPA = iwarp.MPAOptions{NoCRC: x.cfg.NoCRC, MaxULPDU: x.cfg.ULPDU}
	for _, side := range x.cfg.Markers {
		c.MPA.Markers = c.MPA.Markers || side == rune("ab"[end.Side])
	}
	return c
}

// connect makes connection i.
func (x *run) connect(i int) error {
	qcs := [2]*iwarp.QPConfig{x.queuePair(End{i, 0}), x.queuePair(End{i, 1})}
	qps, err := x.meet(i, qcs)
	if err != nil {
		return err
	}
	for side, qp := range qps {
		e := &liveEnd{End: End{i, side}, qp: qp}
		x.ends[e.End], x.byQP[qp] = e, e
		own := x.memory(x.plan.Conns[i].Own[side])
		if e.own, err = x.hosts[side].pd.RegisterMR(own.b, stag.LocalWrite, nil); err != nil {
			return err
		}
		x.regions[&Region{Kind: "own"}] = &liveRegion{mr: e.own}
	}
	return nil
}

// meet connects two queue pairs.
func (x *run) meet(i int, qcs [2]*iwarp.QPConfig) (qps [2]*iwarp.QP, err error) {
	rnics := [2]*iwarp.RNIC{x.hosts[0].rnic, x.hosts[1].rnic}
	if x.cfg.Network == Records {
		if x.records == nil {
			return qps, fmt.Errorf("network %s: %w: only the test of the root package provides it", Records, ErrNotHere)
		}
		return x.records(x.cfg, i, rnics, qcs)
	}
	return connect(x.ctx, x.cfg.Network, rnics, qcs, func(network, to string) (string, error) {
		if f := x.plan.Conns[i].Fault; f == nil || f.Verb != Cut || !x.cfg.isMPA() {
			return to, nil
		}
		cut, err := damage.NewLine(x.ctx, network, to)
		if err != nil {
			return "", err
		}
		cut.BeforeCut = x.beforeCut
		x.cuts[i] = cut
		return cut.Addr(), nil
	})
}

// Connect connects a queue pair of each of two RNICs over a network. It returns an error that matches ErrNotHere
// if this machine does not support the network.
func Connect(ctx context.Context, network string, rnics [2]*iwarp.RNIC, qcs [2]*iwarp.QPConfig) ([2]*iwarp.QP, error) {
	return connect(ctx, network, rnics, qcs, func(_, to string) (string, error) { return to, nil })
}

// connect connects to the address that via returns.
func connect(ctx context.Context, network string, rnics [2]*iwarp.RNIC, qcs [2]*iwarp.QPConfig, via func(network, to string) (string, error),
) (qps [2]*iwarp.QP, err error) {
	addr := "127.0.0.1:0"
	lc := iwarp.ListenConfig{SetupTimeout: longWait, ProgressTimeout: longWait} // the machine may be busy
	switch network {
	case TLS:
		network, lc.TLS, qcs[0].TLS = TCP, serverTLS(), clientTLS()
	case Pipe:
		addr = ""
	}
	l, err := rnics[1].Listen(ctx, network, addr, &lc)
	if errors.Is(err, iwarp.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	if err != nil {
		return qps, err
	}
	defer func() { _ = l.Close() }()
	to, err := via(network, l.Addr().String())
	if err != nil {
		return qps, err
	}
	return dialAndAccept(ctx, rnics[0], network, to, l, qcs)
}

func dialAndAccept(ctx context.Context, client *iwarp.RNIC, network, to string, l *iwarp.Listener, qcs [2]*iwarp.QPConfig) (qps [2]*iwarp.QP, err error) {
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			qps[1], err = cr.Accept(ctx, qcs[1])
		}
		accepted <- err
	}()
	qp, err := client.Dial(ctx, network, to, qcs[0])
	if err != nil {
		_ = l.Close()
	}
	err = errors.Join(err, <-accepted)
	qps[0] = qp
	return qps, err
}

const certified = "iwarp.test"

// certificate is the certificate of all listeners.
var certificate, roots = selfsigned.New(certified)

func serverTLS() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{certificate}} }

func clientTLS() *tls.Config { return &tls.Config{RootCAs: roots, ServerName: certified} }
