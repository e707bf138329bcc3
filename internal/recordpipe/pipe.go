package recordpipe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp/transport"
)

// Options describe a pipe of records. Both directions are alike.
type Options struct {
	// MaxULPDU is what MaxULPDU of both ends returns, in octets. Zero: 1452, as on
	// Ethernet.
	MaxULPDU int
	// Window lets segments overtake one another: each is handed up before the
	// Window-th after it in the sender's order. Up to one: all stay in order.
	Window int
	// Seed chooses among the orders.
	Seed uint64
	// Batch is how many segments Append takes before it requires a Flush. Zero: 64.
	Batch int
	// Read is the maximum number of segments that one Receive hands up. Zero: 64.
	Read int
	// Limit bounds the octets of one direction that are flushed and not yet taken by
	// the peer's Placer; beyond it Flush waits. A single segment always passes.
	// Zero: 1 MiB.
	Limit int
}

const (
	defaultULPDU = 1452
	defaultBatch = 64
	defaultRead  = 64
	defaultLimit = 1 << 20

	network = "records"
)

// New returns the two ends of an in-memory LLP that keeps the boundaries of
// segments by itself, as SCTP does, and may hand them up out of order. Nothing is
// lost. Like [transport.Pipe] it can be used within a testing/synctest bubble and has no
// goroutine; Arm reports false. An end that is aborted, or closed with segments
// not yet taken, resets the connection: the peer gets ECONNRESET.
func New(o Options) (a, b transport.LLP) {
	if o.MaxULPDU <= 0 {
		o.MaxULPDU = defaultULPDU
	}
	if o.Batch <= 0 {
		o.Batch = defaultBatch
	}
	if o.Read <= 0 {
		o.Read = defaultRead
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	p := &pipe{options: o}
	p.changed.L = &p.mu
	x := &end{pipe: p, in: queue{rnd: rand.New(rand.NewPCG(o.Seed, 0))}}
	y := &end{pipe: p, in: queue{rnd: rand.New(rand.NewPCG(o.Seed, 1))}}
	x.peer, y.peer = y, x
	x.local, y.local = "a", "b"
	return x, y
}

// pipe is the state that the two ends share.
type pipe struct {
	options Options

	mu      sync.Mutex
	changed sync.Cond // something that a parked call may wait for
	reset   bool      // an end was aborted
}

type end struct {
	pipe  *pipe
	peer  *end
	local addr

	out batch // the sending half's own

	// Guarded by pipe.mu:
	in      queue
	held    *record // taken out of in, but not yet accepted by the Placer
	refused error   // the Placer's error for a segment: nothing more is delivered
	woken   bool
	closed  error // not nil: this end is closed
}

func (e *end) MaxULPDU() int { return e.pipe.options.MaxULPDU }

func (e *end) Arm(func()) bool { return false }
func (e *end) Disarm()         {}

func (e *end) Wake() {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	e.woken = true
	p.changed.Broadcast()
}

func (e *end) CloseSend() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	e.peer.in.ended = true
	p.changed.Broadcast()
	return nil
}

func (e *end) Close() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	e.shut(net.ErrClosed, e.held != nil || len(e.in.records) > 0)
	return nil
}

func (e *end) Abort(cause error) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil {
		return
	}
	err := net.ErrClosed
	if cause != nil && !errors.Is(cause, net.ErrClosed) {
		err = fmt.Errorf("%w: %w", net.ErrClosed, cause)
	} else if cause != nil {
		err = cause
	}
	e.shut(err, true)
}

// shut closes this end. The caller holds the pipe's mutex.
func (e *end) shut(why error, reset bool) {
	p := e.pipe
	e.closed = why
	e.held = nil
	e.in.drop()
	if reset {
		p.reset = true
		e.peer.held = nil
		e.peer.in.drop()
	}
	e.peer.in.ended = true
	p.changed.Broadcast()
}

// failure returns why nothing can be received any more, or nil. The caller holds the
// pipe's mutex.
func (e *end) failure(op string) error {
	switch {
	case e.closed != nil:
		return e.closed
	case e.pipe.reset:
		return e.opError(op, syscall.ECONNRESET)
	}
	return nil
}

func (e *end) opError(op string, errno syscall.Errno) error {
	return &net.OpError{
		Op: op, Net: network, Source: e.local, Addr: e.peer.local,
		Err: os.NewSyscallError(op, errno),
	}
}

// Caps reports whether the options request reordering. Memory has no digest.
func (e *end) Caps() transport.Caps { return transport.Caps{OutOfOrder: e.pipe.options.Window > 1} }
func (e *end) Path() string         { return network }
func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.peer.local }

type addr string

func (addr) Network() string  { return network }
func (a addr) String() string { return string(a) }
