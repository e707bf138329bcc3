package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// RecordOptions describe a pipe of records. Both directions are alike.
type RecordOptions struct {
	// MaxULPDU is what both ends answer to MaxULPDU, in octets. Zero: 1452, as on
	// Ethernet.
	MaxULPDU int
	// Latency is how long after its Flush a segment, or the end of the stream,
	// arrives.
	Latency time.Duration
	// Window lets segments overtake one another: each is handed up before the
	// Window-th after it in the sender's order. Up to one: all stay in order.
	Window int
	// Seed chooses among the orders.
	Seed uint64
	// Batch is how many segments Append takes before it wants a Flush. Zero: 64.
	Batch int
	// Limit bounds the octets of one direction that are flushed and not yet taken by
	// the peer's Placer; Flush waits beyond it. A single segment always passes.
	// Zero: 1 MiB.
	Limit int
}

const (
	defaultRecordSize  = 1452
	defaultRecordBatch = 64
	defaultRecordLimit = 1 << 20

	recordNetwork = "records"
)

// RecordPipe returns the two ends of an in-memory LLP that keeps the boundaries of
// segments by itself, as SCTP does, and may hand them up out of order. Nothing is
// lost. Like [Pipe] it can be used within a testing/synctest bubble and has no
// goroutine; Arm reports false. An end that is aborted, or closed with segments
// not yet taken, resets the connection: the peer meets ECONNRESET.
func RecordPipe(o RecordOptions) (a, b LLP) {
	if o.MaxULPDU <= 0 {
		o.MaxULPDU = defaultRecordSize
	}
	if o.Batch <= 0 {
		o.Batch = defaultRecordBatch
	}
	if o.Limit <= 0 {
		o.Limit = defaultRecordLimit
	}
	p := &recordPipe{options: o}
	p.changed.L = &p.mu
	x := &recordEnd{pipe: p, in: recordQueue{rnd: rand.New(rand.NewPCG(o.Seed, 0))}}
	y := &recordEnd{pipe: p, in: recordQueue{rnd: rand.New(rand.NewPCG(o.Seed, 1))}}
	x.peer, y.peer = y, x
	x.local, y.local = "a", "b"
	return x, y
}

// recordPipe is what the two ends share.
type recordPipe struct {
	options RecordOptions

	mu      sync.Mutex
	changed sync.Cond // something that a parked call may wait for
	reset   bool      // an end was aborted
}

type recordEnd struct {
	pipe  *recordPipe
	peer  *recordEnd
	local recordAddr

	out recordBatch // the sending half's own

	// Guarded by pipe.mu:
	in      recordQueue
	held    *record // taken out of in, but not by the Placer
	refused error   // what the Placer said of a segment: nothing more is delivered
	woken   bool
	closed  error // not nil: this end is closed
}

func (e *recordEnd) MaxULPDU() int { return e.pipe.options.MaxULPDU }

func (e *recordEnd) Arm(func()) bool { return false }
func (e *recordEnd) Disarm()         {}

func (e *recordEnd) Wake() {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	e.woken = true
	p.changed.Broadcast()
}

func (e *recordEnd) CloseSend() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	e.peer.in.end(p.options.Latency)
	p.changed.Broadcast()
	return nil
}

func (e *recordEnd) Close() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	e.shut(net.ErrClosed, e.held != nil || len(e.in.records) > 0)
	return nil
}

func (e *recordEnd) Abort(cause error) {
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
func (e *recordEnd) shut(why error, reset bool) {
	p := e.pipe
	e.closed = why
	e.held = nil
	e.in.drop()
	if reset {
		p.reset = true
		e.peer.held = nil
		e.peer.in.drop()
	}
	e.peer.in.end(p.options.Latency)
	p.changed.Broadcast()
}

// failure is why nothing can be received any more, or nil. The caller holds the
// pipe's mutex.
func (e *recordEnd) failure(op string) error {
	switch {
	case e.closed != nil:
		return e.closed
	case e.pipe.reset:
		return e.opError(op, syscall.ECONNRESET)
	}
	return nil
}

func (e *recordEnd) opError(op string, errno syscall.Errno) error {
	return &net.OpError{
		Op: op, Net: recordNetwork, Source: e.local, Addr: e.peer.local,
		Err: os.NewSyscallError(op, errno),
	}
}

// Caps tells whether the options ask for reordering. Memory has no digest.
func (e *recordEnd) Caps() Caps           { return Caps{OutOfOrder: e.pipe.options.Window > 1} }
func (e *recordEnd) Path() string         { return recordNetwork }
func (e *recordEnd) LocalAddr() net.Addr  { return e.local }
func (e *recordEnd) RemoteAddr() net.Addr { return e.peer.local }

type recordAddr string

func (recordAddr) Network() string  { return recordNetwork }
func (a recordAddr) String() string { return string(a) }
