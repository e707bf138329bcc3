package rma

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/solicit"
)

// An Executor moves any number of octets between this side and regions of one peer, by operations of its
// Portals, which nothing else may use. It splits transfers at Client.MaxOp, and keeps as many operations
// outstanding as the delay of the answers allows.
type Executor struct {
	portals  []*Portal
	maxOp    int
	noReopen bool

	mu       sync.Mutex // locked before those of the Portals
	pacer    solicit.Pacer
	inFlight int     // operations
	queued   int     // operations in flight that wait for the window
	waiting  moves   // moves that could not begin a chunk
	idle     []*move // for reuse
	handles  map[handleName]*Handle
}

// A handleName names a Handle of another connection that stands for the same region.
type handleName struct {
	client *Client
	first  *Handle
}

var (
	errNoPortal      = errors.New("rma: an Executor without Portals")
	errPortalsClosed = fmt.Errorf("%w: the Portals of the Executor are closed", ErrNoSlot)
)

// NewExecutor returns an Executor on at least one Portal. Nothing else may use the Portals. They may belong
// to several connections to the same peer: each operation goes to the Portal with the fewest operations
// whose connection has not ended. Such an Executor opens each region on the other connections too, and
// keeps those Handles as long as it exists.
func NewExecutor(portals ...*Portal) *Executor {
	e := &Executor{portals: portals, handles: make(map[handleName]*Handle)}
	for i, p := range portals {
		if n := p.client.MaxOp(); i == 0 || n < e.maxOp {
			e.maxOp = n
		}
	}
	return e
}

// SetAutoReopen sets whether the Executor opens a region again, once for each call, when its keys are of
// an older epoch, and repeats the operations that were refused. The default is true. Call SetAutoReopen
// before the first transfer.
func (e *Executor) SetAutoReopen(on bool) { e.noReopen = !on }

// Stats returns what the Executor has measured of the path.
func (e *Executor) Stats() solicit.PacerStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pacer.Stats()
}

// ReadAt reads len(p) octets of a region from offset off. It returns how many it read before the first
// failure, and that failure, usually an *OpError. If ctx ends, ReadAt returns 0 and the error of ctx at
// once; p then belongs to the Executor until the outstanding operations have ended, each in bounded time.
func (e *Executor) ReadAt(ctx context.Context, h *Handle, p []byte, off int64) (int, error) {
	return e.run(ctx, Command{Op: Read, Handle: h, Buf: p}, off)
}

// WriteAt writes p to a region at offset off. Its results, and the time when p may be used again, are as
// for ReadAt. Each operation is a separate write, and WriteAt as a whole is not atomic.
func (e *Executor) WriteAt(ctx context.Context, h *Handle, p []byte, off int64) (int, error) {
	return e.run(ctx, Command{Op: Write, Handle: h, Buf: p}, off)
}

func (e *Executor) run(ctx context.Context, cmd Command, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, fmt.Errorf("rma: the offset is negative: %d", off)
	case len(e.portals) == 0:
		return 0, errNoPortal
	case cmd.Handle == nil:
		return 0, errNotOpen
	}
	cmd.Off = uint64(off)
	if len(cmd.Buf) > e.maxOp {
		cmd.Class = solicit.Bulk
	}
	m := e.move()
	m.cmd = cmd
	m.t.Reset(uint64(len(cmd.Buf)), uint32(e.maxOp), !e.noReopen)
	n, err := m.run(ctx)
	if m.abandoned {
		return n, err
	}
	e.spare(m)
	return n, err
}

// move returns a move that nothing uses.
func (e *Executor) move() *move {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.idle); n > 0 {
		m := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return m
	}
	return &move{e: e, woken: make(chan struct{}, 1)}
}

func (e *Executor) spare(m *move) {
	clear(m.failures)
	m.cmd, m.failures = Command{}, m.failures[:0]
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, m)
}

// begin returns a Portal and a slot if the move may begin a chunk now. If it returns neither a Portal nor an
// error, the move is woken when it may try again, and tries again by itself at the time at. A move that has
// begun a chunk in its turn may begin more until there is no room.
func (e *Executor) begin(m *move, now time.Time) (p *Portal, s Slot, at time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !m.turn && !e.waiting.isNext(m) {
		e.waiting.join(m)
		return nil, 0, at, nil
	}
	if e.queued < e.pacer.Depth() {
		var ok bool
		if ok, at = e.pacer.MayIssue(now, e.inFlight); ok {
			p, s, err = e.takeSlot()
		}
	}
	switch {
	case p != nil:
		e.inFlight++
		e.queued++
		m.turn = true
		e.waiting.leave(m)
	case err == nil:
		m.turn = false
		e.waiting.join(m)
	}
	return p, s, at, err
}

// leave removes a move that begins no chunk for now from the line. Only the goroutine of the move calls it.
func (e *Executor) leave(m *move) {
	if m.turn = false; !m.inLine {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting.leave(m)
}

// send sends the requests of operations that were begun.
func (e *Executor) send() {
	for _, p := range e.portals {
		p.client.c.send()
	}
}

// takeSlot takes a slot of the Portal with the fewest operations; nil: none is free now. It fails if all
// Portals are closed. If all connections have ended, it takes a slot of one of them, so that the operation
// fails with the reason for that.
func (e *Executor) takeSlot() (*Portal, Slot, error) {
	for {
		best, open := e.fewest(false)
		if !open {
			best, open = e.fewest(true)
		}
		switch {
		case !open:
			return nil, 0, errPortalsClosed
		case best == nil:
			return nil, 0, nil
		}
		if s, err := best.take(); err == nil {
			return best, s, nil
		}
	}
}

// fewest finds the Portal with the fewest operations that has a free slot, among the open Portals on
// connections that have ended, or on those that have not. open reports whether there are such Portals.
func (e *Executor) fewest(ended bool) (best *Portal, open bool) {
	least := 0
	for _, p := range e.portals {
		n, free, closed := p.load()
		if closed || p.client.ended() != ended {
			continue
		}
		open = true
		if free && (best == nil || n < least) {
			best, least = p, n
		}
	}
	return best, open
}

// issued notes that an operation has left the queue.
func (e *Executor) issued() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queued--
	e.waiting.wake()
}

// undo reverts begin for a chunk that could not be begun.
func (e *Executor) undo(p *Portal, s Slot) {
	p.give(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inFlight--
	e.queued--
	e.waiting.wake()
}

// ended handles the end of a chunk. move.tell wakes the next move that waits.
func (e *Executor) ended(p *Portal, s Slot, end *Completion) {
	p.give(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inFlight--
	e.pacer.Done(time.Now(), end.Issue, end.Total, outcomeOf(end.Err))
}

// outcomeOf returns what the end of an operation means for the pacer.
func outcomeOf(err error) solicit.Outcome {
	switch {
	case err == nil:
		return solicit.OK
	case errors.Is(err, ErrNACK):
		return solicit.Nack
	case errors.Is(err, ErrTimeout):
		return solicit.Timeout
	default:
		return solicit.Failed
	}
}

// handle finds or opens the Handle on a connection that corresponds to h.
func (e *Executor) handle(ctx context.Context, cl *Client, h *Handle) (*Handle, error) {
	if h.client == cl {
		return h, nil
	}
	name := handleName{cl, h}
	e.mu.Lock()
	other := e.handles[name]
	e.mu.Unlock()
	if other != nil {
		return other, nil
	}
	e.send() // operations that were begun before do not wait for the answer
	other, err := cl.Open(ctx, h.region, h.ops)
	if err == nil {
		e.mu.Lock()
		e.handles[name] = other
		e.mu.Unlock()
	}
	return other, err
}

// reopen requests the keys of a region again, on all connections that have not ended.
func (e *Executor) reopen(ctx context.Context, h *Handle) error {
	var err error
	if !h.client.ended() {
		err = h.Reopen(ctx)
	}
	for _, p := range e.portals {
		if err != nil {
			return err
		}
		e.mu.Lock()
		other := e.handles[handleName{p.client, h}]
		e.mu.Unlock()
		if other != nil && !p.client.ended() {
			err = other.Reopen(ctx)
		}
	}
	return err
}

// staleKey is the Verdict of operations for which a Transfer opens the region again.
var staleKey = op.Verdict{Outcome: op.RemoteAuth, Reason: op.StaleEpoch}

// verdictOf returns how an operation has ended, in terms of package op. A wrong key may belong to a closed
// region whose number a new region has by now. To open the region again shows whether it does.
func verdictOf(err error) op.Verdict {
	if err == nil {
		return op.Verdict{}
	}
	var o *OpError
	switch {
	case !errors.As(err, &o):
		return op.Verdict{Outcome: op.Closed}
	case o.Outcome == RemoteAuth && o.Reason == BadKey:
		return staleKey
	}
	return op.Verdict{Outcome: op.Outcome(o.Outcome), Reason: op.Reason(o.Reason)}
}
