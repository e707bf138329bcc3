package rma

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/transport"
)

const (
	runRegions = 2
	runSize    = 4096 // octets of a region
	runPoison  = 4096 // octets of poison on each side of a region
	runOps     = 3    // simultaneous operations, each on its own part of a region
)

// An attackRun puts a random attacker between a client and a server, and compares the server's regions with a
// model of them.
type attackRun struct {
	testing.TB
	*attacker
	seed    uint64
	source  *lockedSource
	network string // pipe in virtual time, or tcp in real time

	rnics       [2]*iwarp.RNIC
	cfg         ClientConfig
	clientAuth  *cm.Auth
	serverAuth  *cm.Auth
	server      *Server
	regions     [runRegions]*Region
	mems        [runRegions][]byte // with the poison around each region
	models      [runRegions][]byte // only the region
	quiet       [runRegions][]byte // the regions of a client that serves too
	served      chan error
	client      *Client
	portal      *Portal
	handles     [runRegions]*Handle
	connections int
	expired     int                       // operations of this connection that failed without an attack: their data may still arrive
	counts      map[string]map[string]int // by kind and by result
	greeting    error                     // of NewClient
	refusals    atomic.Uint64             // records of the server
}

// newAttackRun makes the server, but no connection yet. With both, the client serves regions with the same numbers and keys, which
// are not used.
func newAttackRun(t testing.TB, network string, both bool, seed uint64) *attackRun {
	source := &lockedSource{pcg: rand.NewPCG(seed, 0)}
	f := &attackRun{TB: t, network: network, seed: seed, source: source, attacker: &attacker{Rand: rand.New(source)}, counts: make(map[string]map[string]int)}
	var pds [2]*iwarp.PD
	for i := range f.rnics {
		f.rnics[i], pds[i] = rnictest.Open(t, new(iwarp.Config))
	}
	f.clientAuth, f.serverAuth = testAuths(t)
	f.cfg = ClientConfig{PD: pds[0], OpTimeout: 30 * time.Millisecond, Dispatch: [2]time.Duration{-1, -1}, HelloTimeout: 50 * time.Millisecond, MaxSlots: 2 * runOps}
	sc := ServerConfig{
		PD: pds[1], AES256: both, Depth: 2 * runOps, PullTimeout: 20 * time.Millisecond, Guard: 12 * time.Millisecond, Linger: 20 * time.Millisecond,
		Dispatch: [2]time.Duration{-1, -1}, HelloTimeout: 50 * time.Millisecond, MaxFailures: 1 << 30,
	}
	if network != "pipe" { // other work on the machine delays the test
		f.cfg.OpTimeout, sc.PullTimeout, f.cfg.HelloTimeout, sc.HelloTimeout = 100*time.Millisecond, 60*time.Millisecond, 0, 0
	}
	sc.Logger = slog.New(refusals{&f.refusals})
	f.server = NewServer(&sc)
	for i := range f.regions {
		f.models[i] = make([]byte, runSize)
		f.mems[i], f.regions[i] = f.register(f.server, i)
	}
	if both {
		sc.PD, sc.Logger = pds[0], nil
		f.cfg.Server = NewServer(&sc)
		for i := range f.quiet {
			f.quiet[i], _ = f.register(f.cfg.Server, i)
		}
	}
	return f
}

// register makes a region of zeros, surrounded by poison.
func (f *attackRun) register(s *Server, i int) ([]byte, *Region) {
	mem := bytes.Repeat([]byte{0xa5}, runSize+2*runPoison)
	own := mem[runPoison : runPoison+runSize : runPoison+runSize]
	clear(own)
	r, err := s.Register(regionID+uint64(i), NewMemory(own), &RegionOptions{Ops: allOps, Key: testKey})
	require.NoError(f, err)
	return mem, r
}

// refusals is a slog.Handler that counts records.
type refusals struct{ n *atomic.Uint64 }

func (refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (r refusals) Handle(context.Context, slog.Record) error  { r.n.Add(1); return nil }
func (r refusals) WithAttrs([]slog.Attr) slog.Handler         { return r }
func (r refusals) WithGroup(string) slog.Handler              { return r }

// virtual reports whether the test decides when segments are delivered.
func (f *attackRun) virtual() bool { return f.network == "pipe" }

// ends makes a connection without QPs.
func (f *attackRun) ends() (client, server net.Conn) {
	if f.virtual() {
		return transport.Pipe(transport.PipeOptions{Limit: 1 << 20})
	}
	l, err := net.Listen(f.network, "127.0.0.1:0")
	require.NoError(f, err)
	defer l.Close()
	client, err = net.Dial(f.network, l.Addr().String())
	require.NoError(f, err)
	server, err = l.Accept()
	require.NoError(f, err)
	return client, server
}

// connects makes a connection, whose set-up the attacker does not touch, and begins to serve.
func (f *attackRun) connects() *iwarp.QP {
	own := 0
	if f.cfg.Server != nil {
		own = f.cfg.Server.cfg.Depth
	}
	cc := qpConfig(f, f.rnics[0], f.cfg.PD, own, f.server.cfg.Depth)
	sc := qpConfig(f, f.rnics[1], f.server.cfg.PD, f.server.cfg.Depth, own)
	cc.Auth = f.clientAuth
	l, cconn, sconn := newLine(f.ends())
	f.begins(l)
	type result struct {
		qp  *iwarp.QP
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		var r result
		var cr *iwarp.ConnRequest
		if cr, r.err = f.rnics[1].Server(context.Background(), sconn, &iwarp.ListenConfig{Auth: f.serverAuth}); r.err == nil {
			r.qp, r.err = cr.Accept(context.Background(), &sc)
		}
		accepted <- r
	}()
	qp, err := f.rnics[0].Client(context.Background(), cconn, &cc)
	require.NoError(f, err)
	r := <-accepted
	require.NoError(f, r.err)
	f.connections++
	f.expired = 0
	if f.virtual() {
		synctest.Wait()
		l.mu.Lock()
		l.steps = true
		l.mu.Unlock()
	}
	f.served = make(chan error, 1)
	go func() { f.served <- f.server.Serve(context.Background(), r.qp) }()
	return qp
}

// until delivers segments until do, which runs in a new goroutine, has returned.
func (f *attackRun) until(do func()) {
	f.Helper()
	if !f.virtual() {
		do()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	for {
		synctest.Wait()
		if f.line.next(func() int { return f.IntN(2) }) {
			continue
		}
		select {
		case <-done:
			return
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// greets makes the client and opens the regions. It reports whether that succeeded.
func (f *attackRun) greets() (good bool) {
	qp := f.connects()
	f.until(func() {
		var err error
		if f.client, err = NewClient(context.Background(), qp, &f.cfg); err != nil {
			f.client, f.greeting = nil, err
			return
		}
		f.portal, err = f.client.Portal(runOps)
		require.NoError(f, err)
		good = f.opens()
	})
	return good
}

func (f *attackRun) opens() bool {
	for i := range f.handles {
		h, err := f.client.Open(context.Background(), f.regions[i].ID(), allOps)
		if err != nil {
			return false
		}
		f.handles[i] = h
	}
	return true
}

// A roundOp is an operation of a round.
type roundOp struct {
	cmd    Command
	region int
	end    Completion
	ended  bool
}

// lengths are the lengths of operations: few, so that other blobs have the same length.
var lengths = []int{0, 16, 64, 64, 64, 200}

// operate performs some operations at the same time, and checks their results.
func (f *attackRun) operate(n int) []roundOp {
	f.Helper()
	all := make([]roundOp, n)
	for i := range all {
		r, size := f.IntN(runRegions), lengths[f.IntN(len(lengths))]
		part := runSize / runOps
		all[i] = roundOp{region: r, cmd: Command{
			Op: Read, Handle: f.handles[r], Off: uint64(i*part + f.IntN(part-size)), Tag: uint64(i), Class: solicit.Class(f.IntN(2)),
			Buf: bytes.Repeat([]byte{0x5a}, size),
		}}
		switch f.IntN(4) {
		case 0, 1:
			all[i].cmd.Op, all[i].cmd.Buf = Write, f.junk(size)
		case 2:
			all[i].cmd.Direct = true
		}
	}
	f.until(func() {
		posted := 0
		for i := range all {
			if _, err := f.portal.Post(all[i].cmd); err != nil {
				require.ErrorIs(f, err, net.ErrClosed)
				all[i].end.Err, all[i].ended = err, true
				continue
			}
			posted++
		}
		for posted > 0 {
			var ends [runOps]Completion
			n, err := f.portal.Wait(context.Background(), ends[:])
			require.NoError(f, err)
			posted -= n
			for _, e := range ends[:n] {
				all[e.Tag].end, all[e.Tag].ended = e, true
			}
		}
	})
	return all
}

// judge compares the buffers and the regions with the model.
func (f *attackRun) judge(all []roundOp, what string) {
	f.Helper()
	for i := range all {
		o := &all[i]
		at := f.models[o.region][o.cmd.Off : o.cmd.Off+uint64(len(o.cmd.Buf))]
		require.True(f, o.ended, what)
		switch {
		case o.cmd.Op == Write && o.end.Err == nil:
			copy(at, o.cmd.Buf)
		case o.cmd.Op == Write && uncertain(o.end.Err):
			have := f.mems[o.region][runPoison+o.cmd.Off : runPoison+o.cmd.Off+uint64(len(o.cmd.Buf))]
			if bytes.Equal(have, o.cmd.Buf) {
				copy(at, o.cmd.Buf)
			}
		case o.cmd.Op == Read && o.end.Err == nil:
			require.True(f, bytes.Equal(at, o.cmd.Buf), "%s: a read that is done has the octets of the region", what)
		case o.cmd.Op == Read && !o.cmd.Direct:
			require.True(f, bytes.Count(o.cmd.Buf, []byte{0x5a}) == len(o.cmd.Buf), "%s: a read that has failed (%v) leaves the buffer alone", what, o.end.Err)
		}
	}
	for i, mem := range f.mems {
		own := mem[runPoison : runPoison+runSize]
		require.True(f, bytes.Equal(f.models[i], own), "%s: region %d has what was written to it", what, i)
		require.Equal(f, 2*runPoison, poison(mem), "%s: nothing around region %d changes", what, i)
	}
	for i, mem := range f.quiet {
		if mem != nil {
			require.Equal(f, []int{2 * runPoison, runSize}, []int{poison(mem), bytes.Count(mem, []byte{0})}, "%s: region %d of the client does not change", what, i)
		}
	}
}

// poison counts the octets around a region that are unchanged.
func poison(mem []byte) int {
	return bytes.Count(mem[:runPoison], []byte{0xa5}) + bytes.Count(mem[runPoison+runSize:], []byte{0xa5})
}

// uncertain reports whether a write that failed may have had an effect.
func uncertain(err error) bool {
	var e *OpError
	return errors.As(err, &e) && !e.Outcome.NoEffect()
}

// close ends the connection, and requires that nothing is left of it. It returns how both sides saw the end.
func (f *attackRun) close() (client, server error) {
	f.Helper()
	f.until(func() {
		if f.client != nil {
			require.NoError(f, f.client.Close())
			client = f.client.Err()
		} else {
			client = f.greeting
		}
		server = <-f.served
	})
	if f.client != nil {
		require.Zero(f, f.client.c.solicitor.Stats().Granted)
		require.Zero(f, f.client.c.scratch.used())
	}
	f.client = nil
	require.Zero(f, f.server.scratch.used())
	require.Zero(f, f.server.solicitor.Stats().Granted)
	require.Zero(f, f.server.queue)
	return client, server
}

// alive reports whether the connection still exists.
func (f *attackRun) alive() bool {
	if f.client == nil {
		return false
	}
	select {
	case <-f.client.Done():
		return false
	default:
		return true
	}
}
