package rma

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/rma/internal/op"
)

// A move is one call of an Executor. The caller's goroutine begins the chunks and handles their ends.
type move struct {
	e         *Executor
	cmd       Command
	t         op.Transfer
	failures  []failure
	abandoned bool // ctx ended before the operations

	woken chan struct{} // has a token if something may have changed

	turn         bool // it has begun a chunk since it was first in line; only its own goroutine uses turn and inLine
	inLine       bool
	ahead, after *move // in Executor.waiting, under the lock of the Executor

	mu     sync.Mutex // a leaf
	chunks []chunk    // by the Slot that completions have
	free   []Slot     // of chunks
	ends   []chunkEnd // that the goroutine has not handled
}

// A chunk is one outstanding operation.
type chunk struct {
	op.Chunk
	portal *Portal
	slot   Slot
}

// A chunkEnd is how a chunk has ended.
type chunkEnd struct {
	chunk op.Chunk
	err   error
}

// run moves everything.
func (m *move) run(ctx context.Context) (int, error) {
	for {
		at, err := m.beginAll(ctx)
		if err != nil {
			return m.abandon(err)
		}
		if n, why, ok := m.t.Finished(); ok {
			return int(n), m.errorOf(why)
		}
		if err := m.wait(ctx, at); err != nil {
			return m.abandon(err)
		}
		if err := m.takeEnds(ctx); err != nil {
			return m.abandon(err)
		}
	}
}

// abandon stops waiting for the outstanding operations.
func (m *move) abandon(err error) (int, error) {
	m.abandoned = true
	m.e.leave(m)
	return 0, err
}

// beginAll begins as many chunks as it may. It returns the time at which it may begin one more, if
// that is known.
func (m *move) beginAll(ctx context.Context) (at time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return at, err
	}
	defer m.e.send()
	m.turn = false
	for m.t.Ready() {
		p, s, at, err := m.e.begin(m, time.Now())
		if p == nil && err == nil {
			return at, nil
		}
		c, _ := m.t.Next()
		if err != nil {
			m.t.Done(c, m.failed(err))
		} else {
			m.post(ctx, chunk{c, p, s})
		}
	}
	m.e.leave(m)
	return at, nil
}

// post begins a chunk. If that fails it has ended.
func (m *move) post(ctx context.Context, c chunk) {
	cmd := m.cmd
	cmd.Off += c.Off
	cmd.Buf = m.cmd.Buf[c.Off : c.Off+uint64(c.N)]
	s := m.number(c)
	h, err := m.e.handle(ctx, c.portal.client, cmd.Handle)
	if err == nil {
		cmd.Handle = h
		err = c.portal.begin(&cmd, m, s)
	}
	if err != nil {
		m.e.undo(c.portal, c.slot)
		m.ended(s, err)
		m.wake()
	}
}

// number gives a chunk a place in the list.
func (m *move) number(c chunk) Slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.free); n > 0 {
		s := m.free[n-1]
		m.free = m.free[:n-1]
		m.chunks[s] = c
		return s
	}
	m.chunks = append(m.chunks, c)
	return Slot(len(m.chunks) - 1)
}

// ended takes a chunk off the list, and notes how it has ended.
func (m *move) ended(s Slot, err error) chunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.chunks[s]
	m.chunks[s] = chunk{}
	m.free = append(m.free, s)
	m.ends = append(m.ends, chunkEnd{c.Chunk, err})
	return c
}

// issued notes that a chunk has left the queue.
func (m *move) issued() { m.e.issued() }

// completed handles the end of a chunk.
func (m *move) completed(s Slot, end Completion) {
	c := m.ended(s, end.Err)
	m.e.ended(c.portal, c.slot, &end)
}

// tell wakes m, and the next move that waits.
func (m *move) tell() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.waiting.wake()
	m.wake()
}

func (m *move) wake() {
	select {
	case m.woken <- struct{}{}:
	default: // there is a token
	}
}

// wait waits until something may have changed, or until at if that is not zero.
func (m *move) wait(ctx context.Context, at time.Time) error {
	var timer *time.Timer
	var rings <-chan time.Time
	if !at.IsZero() {
		timer = time.NewTimer(time.Until(at))
		defer timer.Stop()
		rings = timer.C
	}
	select {
	case <-m.woken:
	case <-rings:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// takeEnds handles the ends of chunks, and opens the region again if the Transfer requests it.
func (m *move) takeEnds(ctx context.Context) error {
	reopen := false
	m.mu.Lock()
	for _, end := range m.ends {
		v := m.failed(end.err)
		reopen = m.t.Done(end.chunk, v) || reopen
	}
	clear(m.ends)
	m.ends = m.ends[:0]
	m.mu.Unlock()
	if !reopen {
		return nil
	}
	m.e.leave(m) // others do not wait for the answer
	// The refused chunks are begun again, so their error is not that of the move. It would also hide the error of
	// an Open that is refused, which has the same Verdict.
	m.failures = slices.DeleteFunc(m.failures, func(f failure) bool { return f.verdict == staleKey })
	m.t.Reopened(m.failed(m.e.reopen(ctx, m.cmd.Handle)))
	return ctx.Err()
}

// A failure is the first error with its Verdict.
type failure struct {
	verdict op.Verdict
	err     error
}

// failed returns the Verdict of an error, and keeps the error if it is the first one with that Verdict.
func (m *move) failed(err error) op.Verdict {
	v := verdictOf(err)
	if err != nil && m.errorOf(v) == nil {
		m.failures = append(m.failures, failure{v, err})
	}
	return v
}

// errorOf finds the error of a Verdict.
func (m *move) errorOf(v op.Verdict) error {
	for _, f := range m.failures {
		if f.verdict == v {
			return f.err
		}
	}
	return nil
}
