package incast

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

const (
	// slots is the maximum number of operations of one host. The Executor decides how many
	// of them it uses.
	slots = 16
	// Times that no operation needs, however slow the link is.
	pullTimeout = 5 * time.Second
	opTimeout   = time.Minute
)

// A sealing is the way in which package rma writes the data: each host requests that the receiver take
// a number of octets, and the receiver pulls them when its window has room.
type sealing struct {
	*scene
	window  *rma.Solicitor
	server  *rma.Server // of the receiver
	hosting *rma.Server // of the host from which the victim reads
	serving sync.WaitGroup

	initiate iwarp.QPConfig // the identity of clients
	respond  iwarp.ListenConfig
	clients  []*rma.Client
}

// sealed is the way in which the hosts write by package rma.
func sealed(ctx context.Context, s *scene) error {
	window, err := rma.NewSolicitor(solicit.Config{Fixed: s.opts.window})
	if err != nil {
		return err
	}
	v := &sealing{scene: s, window: window}
	if err := errors.Join(authmode.Initiate(authmode.B, &v.initiate), authmode.Respond(authmode.B, &v.respond)); err != nil {
		return err
	}
	s.granted = func() int64 { return window.Stats().MaxGranted }
	s.end = v.end
	v.server = rma.NewServer(v.serverConfig(s.receiver, window))
	v.hosting = rma.NewServer(v.serverConfig(s.hosts, nil))
	for i := range s.opts.peers {
		if err := v.addHost(ctx, i); err != nil {
			return err
		}
	}
	return v.addVictim(ctx)
}

func (v *sealing) serverConfig(d *side, w *rma.Solicitor) *rma.ServerConfig {
	return &rma.ServerConfig{
		PD: d.pd, MaxOp: piece, Depth: slots, QueueDepth: slots * v.opts.peers,
		ScratchLimit: 2 * slots * v.opts.peers * piece, // each operation has memory while it waits
		PullTimeout:  pullTimeout, Dispatch: [2]time.Duration{-1, -1}, Solicitor: w,
	}
}

// addHost connects a host, which can write to a region of the receiver.
func (v *sealing) addHost(ctx context.Context, i int) error {
	if _, err := v.server.Register(uint64(i), rma.NewMemory(v.place(i)), &rma.RegionOptions{Ops: rma.MayWrite}); err != nil {
		return err
	}
	near, far := v.link.Pair()
	portal, handle, err := v.connect(ctx, &pairing{
		client: v.hosts, server: v.receiver, out: far, in: near, serves: v.server, region: uint64(i), ops: rma.MayWrite,
	})
	if err != nil {
		return err
	}
	executor := rma.NewExecutor(portal)
	v.transfers = append(v.transfers, func(ctx context.Context) error {
		_, err := executor.WriteAt(ctx, handle, v.have, 0)
		return err
	})
	return nil
}

// addVictim connects a host with a region that the receiver reads, within its window as well.
func (v *sealing) addVictim(ctx context.Context) error {
	if _, err := v.hosting.Register(0, rma.NewMemory(make([]byte, victimSize)), &rma.RegionOptions{Ops: rma.MayRead}); err != nil {
		return err
	}
	near, far := v.link.Pair()
	portal, handle, err := v.connect(ctx, &pairing{
		client: v.receiver, server: v.hosts, out: near, in: far, serves: v.hosting, window: v.window, ops: rma.MayRead,
	})
	if err != nil {
		return err
	}
	cmd := rma.Command{Op: rma.Read, Handle: handle, Buf: make([]byte, victimSize), Class: solicit.Latency}
	v.victim = func(ctx context.Context) error {
		if _, err := portal.Post(cmd); err != nil {
			return err
		}
		var ends [1]rma.Completion
		if _, err := portal.Wait(ctx, ends[:]); err != nil {
			return err
		}
		return ends[0].Err
	}
	return nil
}

// A pairing is a connection to be made: out is the client's end, in is the server's.
type pairing struct {
	client, server *side
	out, in        net.Conn
	serves         *rma.Server
	window         *rma.Solicitor // of the client; nil: its own
	region         uint64
	ops            rma.Ops
}

// connect makes a client of a server, which may do ops on a region. The client is the initiator.
func (v *sealing) connect(ctx context.Context, p *pairing) (*rma.Portal, *rma.Handle, error) {
	accepted := make(chan error, 1)
	go func() {
		qp, err := v.accept(ctx, p)
		if err == nil {
			v.serving.Go(func() { _ = p.serves.Serve(context.WithoutCancel(ctx), qp) }) // until the client ends it
		}
		accepted <- err
	}()
	client, err := v.dial(ctx, p)
	if err = errors.Join(err, <-accepted); client != nil {
		v.clients = append(v.clients, client)
	}
	if err != nil {
		return nil, nil, err
	}
	handle, err := client.Open(ctx, p.region, p.ops)
	if err != nil {
		return nil, nil, err
	}
	portal, err := client.Portal(slots)
	return portal, handle, err
}

func (v *sealing) accept(ctx context.Context, p *pairing) (*iwarp.QP, error) {
	cr, err := p.server.rnic.Server(ctx, p.in, &v.respond)
	if err != nil {
		return nil, err
	}
	qc := iwarp.QPConfig{PD: p.server.pd}
	if err := rma.Prepare(p.server.rnic, &qc, slots, 0); err != nil {
		return nil, err
	}
	return cr.Accept(ctx, &qc)
}

func (v *sealing) dial(ctx context.Context, p *pairing) (*rma.Client, error) {
	qc := v.initiate
	qc.PD = p.client.pd
	if err := rma.Prepare(p.client.rnic, &qc, 0, slots); err != nil {
		return nil, err
	}
	qp, err := p.client.rnic.Client(ctx, p.out, &qc)
	if err != nil {
		return nil, err
	}
	return rma.NewClient(ctx, qp, &rma.ClientConfig{
		PD: p.client.pd, MaxOp: piece, OpTimeout: opTimeout, Dispatch: [2]time.Duration{-1, -1}, Solicitor: p.window,
	})
}

// end ends the connections.
func (v *sealing) end() {
	var all sync.WaitGroup
	for _, c := range v.clients {
		all.Go(func() { _ = c.Close() }) // its operations are done, or have failed
	}
	all.Wait()
	v.serving.Wait()
}
