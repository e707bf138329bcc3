package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

const (
	sendDepth = 24
	recvDepth = 64
	posted    = 32 // receives that are posted for messages which no helper waits for
	largest   = 48 << 10
)

// A host is a client or a server: an RNIC and the completion queues that some of its queue
// pairs share.
type host struct {
	name           string
	rnic           *iwarp.RNIC
	pd             *iwarp.PD
	sendCQ, recvCQ *iwarp.CQ
}

func newHost(name string, pairs int) (*host, error) {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return nil, err
	}
	h := &host{name: name, rnic: rnic}
	if h.pd, err = rnic.AllocPD(); err != nil {
		return h, err
	}
	if h.sendCQ, err = rnic.CreateCQ(pairs * sendDepth); err != nil {
		return h, err
	}
	h.recvCQ, err = rnic.CreateCQ(pairs * recvDepth)
	return h, err
}

// A pair is a connection.
type pair struct {
	name           string
	client, server *end
}

// An end is one queue pair, and memory for the peer of it.
type end struct {
	name string
	host *host
	peer *end
	qp   *iwarp.QP
	// Memory for the peer. No two kinds of access share octets, since the race detector would
	// rightly report it.
	written, read, counter *iwarp.MR
	pattern                atomic.Pointer[pattern]
}

// connect makes connection number i. Connections with an even number have their own completion
// queues, the others share those of their hosts.
func connect(ctx context.Context, o options, client, server *host, i int) (*pair, error) {
	addr := "127.0.0.1:0"
	if o.network == "pipe" {
		addr = ""
	}
	l, err := server.rnic.Listen(ctx, o.network, addr, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	p := &pair{name: fmt.Sprintf("connection %d", i)}
	p.client, p.server = &end{host: client}, &end{host: server}
	p.client.peer, p.server.peer = p.server, p.client
	for _, e := range []*end{p.client, p.server} {
		e.name = fmt.Sprintf("%s of %s", e.host.name, p.name)
		e.pattern.Store(&patterns[0])
		if err := e.register(); err != nil {
			return nil, err
		}
	}
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			p.server.qp, err = cr.Accept(ctx, p.server.config(i))
		}
		accepted <- err
	}()
	p.client.qp, err = client.rnic.Dial(ctx, o.network, l.Addr().String(), p.client.config(i))
	if other := <-accepted; err == nil {
		err = other
	}
	if err != nil {
		return nil, err
	}
	if i%4 == 2 {
		p.client.qp.SendCQ().SetBusyPoll(20 * time.Microsecond)
	}
	return p, nil
}

// A disk is a Flusher that takes a moment.
type disk struct{}

func (disk) Flush(context.Context, int64, int64) error {
	for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
		runtime.Gosched()
	}
	return nil
}

func (e *end) register() (err error) {
	for _, m := range []struct {
		mr     **iwarp.MR
		n      int
		access stag.Access
	}{
		{&e.written, largest, stag.LocalWrite | stag.RemoteWrite},
		{&e.read, largest, stag.RemoteRead},
		{&e.counter, stag.AtomicLen, stag.LocalWrite | stag.RemoteAtomic},
	} {
		if *m.mr, err = e.host.pd.RegisterMR(make([]byte, m.n), m.access, &iwarp.MROptions{Durable: disk{}}); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) config(i int) *iwarp.QPConfig {
	c := &iwarp.QPConfig{
		PD: e.host.pd, SendDepth: sendDepth, RecvDepth: recvDepth, IRD: 4, ORD: 4,
		RNRWait: time.Minute, // the monitor reports earlier
		Commit:  &iwarp.CommitOptions{},
	}
	if i%2 == 1 {
		c.SendCQ, c.RecvCQ = e.host.sendCQ, e.host.recvCQ
	}
	return c
}

func (p *pair) String() string {
	s := ""
	for _, e := range []*end{p.client, p.server} {
		s += fmt.Sprintf("%s: %v, error %v, %+v\n", e.name, e.qp.State(), e.qp.Err(), e.qp.Stats())
	}
	return s
}
