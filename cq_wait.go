package iwarp

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/transport"
)

// SetBusyPoll has Wait, and the blocking helpers, poll the connection for at most d
// before they sleep. That takes a processor meanwhile and saves the time that waking up
// takes: worth it for short answers on a machine with processors to spare. It works
// where all queues of the CQ are one QP's, on a TCP connection. 0, the default: they
// sleep at once.
func (cq *CQ) SetBusyPoll(d time.Duration) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.waits.Poll = d
}

// A WaitMode is how a goroutine sleeps that waits for a completion.
type WaitMode int

const (
	// WaitPark: the goroutine parks in the Go runtime, as in package net. It takes no thread of
	// the operating system, so any number may wait.
	WaitPark WaitMode = iota
	// WaitBlock: the goroutine sleeps in the kernel, in ppoll(2), and its thread with it. The
	// kernel wakes that thread itself, and not one of the runtime that then finds the goroutine,
	// so what comes is seen some microseconds sooner. Each connection on which a goroutine
	// sleeps so takes a thread and a descriptor (an eventfd, by which a context that ends, a
	// close, or another goroutine's completion wakes it), until the connection is idle or closed.
	// It is for a few goroutines that a program dedicates to waiting. Where GOMAXPROCS is no more
	// than their number, others run only once the runtime's monitor has noticed that they sleep,
	// which takes from 20 us to 10 ms.
	WaitBlock
)

// SetWaitMode chooses how Wait, and the blocking helpers, sleep from now on. WaitBlock works
// where SetBusyPoll does: all queues of the CQ are one QP's, on a TCP connection, on Linux, and no
// other goroutine receives for that QP. Everywhere else they park. A goroutine that sleeps
// already is not disturbed. The two settings go together: first they poll, then they sleep.
func (cq *CQ) SetWaitMode(m WaitMode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.waits.Sleep = transport.Park
	if m == WaitBlock {
		cq.waits.Sleep = transport.Block
	}
}

// plan is how goroutines wait.
func (cq *CQ) plan() qpconn.Plan {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.waits
}

// A cqWaiter is a goroutine in Wait or WaitSolicited. It is a qpconn.Waiter, which receives
// meanwhile if all queues of the CQ are one QP's.
type cqWaiter struct {
	cq        *CQ
	solicited bool
	sole      *QP // CQ.sole, when it began to wait
	token     chan struct{}
}

// waiter borrows a waiter; see also RNIC.helper.
func (cq *CQ) waiter(solicited bool, sole *QP) *cqWaiter {
	w := cq.rnic.cqWaiters.Get()
	if w == nil {
		w = &cqWaiter{token: make(chan struct{}, 1)}
	}
	w.cq, w.solicited, w.sole = cq, solicited, sole
	return w
}

func (w *cqWaiter) spare() {
	r := w.cq.rnic
	w.cq, w.sole = nil, nil
	r.cqWaiters.Put(w)
}

// Done reports whether Wait has something to return, or is to look again.
func (w *cqWaiter) Done() bool {
	w.cq.mu.Lock()
	defer w.cq.mu.Unlock()
	return w.done()
}

func (w *cqWaiter) done() bool { return w.due() || w.cq.sole != w.sole }

// due reports whether there is something for w. mu is held.
func (w *cqWaiter) due() bool { return w.cq.has(w.solicited) || w.cq.closed }

// Enlist adds w to those that wakeNext tells.
func (w *cqWaiter) Enlist() {
	w.cq.mu.Lock()
	defer w.cq.mu.Unlock()
	w.cq.waiters = append(w.cq.waiters, w)
}

// Delist takes w off the list. If it is no longer there it was told, and looks again: when it
// has taken completions it tells the next one, and if there are none left the one that has taken
// them has done so.
func (w *cqWaiter) Delist() {
	cq := w.cq
	cq.mu.Lock()
	defer cq.mu.Unlock()
	for i, o := range cq.waiters {
		if o == w {
			cq.waiters = append(cq.waiters[:i], cq.waiters[i+1:]...)
			return
		}
	}
}

func (w *cqWaiter) Token() chan struct{} { return w.token }

// tell wakes w. mu is held.
func (w *cqWaiter) tell() {
	select {
	case w.token <- struct{}{}:
	default:
	}
}

// Wait is Poll that waits until there is at least one completion. It fails only
// with the error of ctx, or with one that matches net.ErrClosed if the CQ is closed;
// completions that are already there are returned even then.
func (cq *CQ) Wait(ctx context.Context, dst []WC) (int, error) {
	return cq.wait(ctx, dst, false)
}

// WaitSolicited is Wait that sleeps until a message with a solicited event has come
// or something has failed; it then returns whatever there is, the oldest first.
func (cq *CQ) WaitSolicited(ctx context.Context, dst []WC) (int, error) {
	return cq.wait(ctx, dst, true)
}

func (cq *CQ) wait(ctx context.Context, dst []WC, solicited bool) (int, error) {
	if len(dst) == 0 {
		return 0, fmt.Errorf("iwarp: wait: no room for completions")
	}
	for {
		cq.mu.Lock()
		sole, closed, plan := cq.sole, cq.closed, cq.waits
		n := 0
		if cq.has(solicited) {
			n = cq.poll(dst)
			cq.wakeNext()
		}
		cq.mu.Unlock()
		switch {
		case n > 0:
			freeSlots(dst[:n])
			if sole != nil && sole.sendCQ == cq {
				sole.waited()
			}
			return n, nil
		case closed:
			return 0, errCQClosed
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		w := cq.waiter(solicited, sole)
		w.wait(ctx, plan)
		w.spare()
	}
}

// wait returns when w is done or ctx has ended.
func (w *cqWaiter) wait(ctx context.Context, plan qpconn.Plan) {
	if w.sole != nil {
		if conn := w.sole.conn.Load(); conn != nil {
			conn.Wait(ctx, w, plan)
			return
		}
	}
	qpconn.Sleep(ctx, w)
}

// waited tells the connection, if there is one, that a wait for completions has ended.
func (qp *QP) waited() {
	if conn := qp.conn.Load(); conn != nil {
		conn.Waited()
	}
}

// has reports whether Wait, or WaitSolicited, has something to return. Of a closed CQ that
// is whatever is left. mu is held.
func (cq *CQ) has(solicited bool) bool {
	if solicited && !cq.closed {
		return cq.solicited > 0
	}
	return cq.len() > 0
}
