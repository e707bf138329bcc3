package qpconn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// The Owner.

func (e *end) Received() {
	e.pass("Received")
	e.conn.stream.BatchDone()
}

func (e *end) Sent() { e.pass("Sent") }

func (e *end) HasReceive() bool {
	e.pass("HasReceive")
	defer e.pass("HasReceive has looked")
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.posted > 0 || e.ended
}

func (e *end) Notice(n Notice) {
	e.tell([]string{"fenced", "no receive", "no progress"}[n])
}

func (e *end) ReceiveOverdue() {
	e.tell("overdue")
	if e.conn.mu.TryLock() {
		e.conn.mu.Unlock()
		e.Error("a receive could be posted now, and the next message would be in error in place of this one")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gaveUp = true
}

func (e *end) Failed(cause error) error {
	e.pass("Failed")
	e.tell("Failed")
	return fmt.Errorf("reported: %w", cause)
}

func (e *end) Leaving() { e.pass("Leaving") }

func (e *end) Flush() {
	e.pass("Flush")
	e.tell("Flush")
}

func (e *end) Ended() { e.tell("Ended") }

// The Events of the stream.

func (e *end) Complete(r *rdmap.Request, st rdmap.Status, _ transport.Code) {
	e.mu.Lock()
	e.statuses = append(e.statuses, st)
	e.mu.Unlock()
	if w, ok := r.Tag.(*waiter); ok {
		w.finish()
	}
}

func (e *end) Completed() {}

func (e *end) Terminated(t rdmap.Terminate) {
	e.tell("Terminated")
	e.conn.PeerTerminated(transport.Faultf(t.Code, "the peer has found an error"))
}

func (e *end) Kick() { e.conn.Post() }

// receives is the receive queue.
type receives struct{ e *end }

func (q receives) Posted() int {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	return q.e.posted
}

func (q receives) Buffer(int) []stag.Span { return nil }

func (q receives) Missing() error {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	if q.e.gaveUp || q.e.ended {
		return nil
	}
	return transport.ErrStall
}

func (q receives) Deliver(rdmap.Received) {
	q.e.mu.Lock()
	q.e.posted--
	q.e.delivered++
	var w *waiter
	if len(q.e.expected) > 0 {
		w, q.e.expected = q.e.expected[0], q.e.expected[1:]
	}
	q.e.mu.Unlock()
	if w != nil {
		w.finish()
	}
}

func (q receives) DeliverSends(_ rdmap.Opcode, lens []uint32) {
	for range lens {
		q.Deliver(rdmap.Received{})
	}
}

// A waiter waits for one event. Like a waiter of a CQ, it is sent a token only if it has asked for one.
type waiter struct {
	stops
	e        *end
	token    chan struct{}
	done     atomic.Bool
	returned atomic.Bool // from Wait

	mu     sync.Mutex
	listed bool
	asked  int // how often it has asked for a token
}

func newWaiter(e *end) *waiter { return &waiter{e: e, token: make(chan struct{}, 1)} }

func (w *waiter) Token() Token { return w.token }

func (w *waiter) Done() bool {
	done := w.done.Load()
	w.pass("Done")
	return done
}

func (w *waiter) Enlist() {
	w.pass("Enlist")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listed {
		w.e.Error("Enlist of a waiter that is on the list")
	}
	w.listed = true
	w.asked++
}

func (w *waiter) Delist() {
	w.pass("Delist")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = false
}

// finish ends the wait.
func (w *waiter) finish() {
	w.done.Store(true)
	w.mu.Lock()
	if w.listed {
		w.Token().Tell()
	}
	w.mu.Unlock()
	w.e.conn.Nudge()
}

func (w *waiter) starts(ctx context.Context, p Plan) {
	w.returned.Store(false)
	go func() {
		w.e.conn.Wait(ctx, w, p)
		w.e.mu.Lock()
		w.e.expected = slices.DeleteFunc(w.e.expected, func(o *waiter) bool { return o == w })
		w.e.mu.Unlock()
		w.returned.Store(true)
	}()
}

// ends requires that the wait has ended, and hasNot that it has not.
func (w *waiter) ends(expectation string) {
	w.e.Helper()
	synctest.Wait()
	require.True(w.e, w.returned.Load(), "%s: %s", expectation, w.e.state())
}

func (w *waiter) hasNot(expectation string) {
	w.e.Helper()
	synctest.Wait()
	require.False(w.e, w.returned.Load(), expectation)
}
