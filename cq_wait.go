package iwarp

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/transport"
)

// SetBusyPoll makes Wait and the blocking helpers poll the connection for up to d before they
// sleep. Polling occupies a processor but avoids the delay of a wake-up, which is worthwhile
// for short round trips on a machine with spare processors. It takes effect if all queues of
// the CQ belong to one QP, on a TCP connection. With 0, the default, they sleep at once.
func (cq *CQ) SetBusyPoll(d time.Duration) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.waits.Poll = d
}

// A WaitMode selects how a goroutine sleeps while it waits for a completion.
type WaitMode int

const (
	// WaitPark parks the goroutine in the Go runtime, as package net does. It occupies no
	// operating system thread, so any number of goroutines may wait.
	WaitPark WaitMode = iota
	// WaitBlock makes the goroutine, and its thread with it, sleep in the kernel, in ppoll(2).
	// The kernel wakes that thread directly, without the runtime's poller and scheduler, so
	// the goroutine sees a completion some microseconds sooner. Each connection on which a
	// goroutine sleeps in this mode occupies a thread and a descriptor until the connection is
	// idle or closed. The descriptor is an eventfd; it wakes the thread when the context ends,
	// when the connection is closed, or for a completion that another goroutine has received.
	// WaitBlock is meant for a few goroutines that a program dedicates to waiting. If
	// GOMAXPROCS is not larger than their number, other goroutines run only after the
	// runtime's monitor has noticed that the threads sleep, which takes from 20 us to 10 ms.
	WaitBlock
)

// SetWaitMode selects how later calls of Wait and of the blocking helpers sleep. WaitBlock
// takes effect on Linux, if all queues of the CQ belong to one QP, on a TCP connection, and no
// other goroutine receives for that QP. Otherwise goroutines park. A goroutine that already
// sleeps is not affected. SetBusyPoll and SetWaitMode can be combined: a goroutine first
// polls, then sleeps.
func (cq *CQ) SetWaitMode(m WaitMode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.waits.Sleep = transport.Park
	if m == WaitBlock {
		cq.waits.Sleep = transport.Block
	}
}

// plan returns how goroutines wait.
func (cq *CQ) plan() qpconn.Plan {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.waits
}

// A cqWaiter is a goroutine in Wait or WaitSolicited. It implements qpconn.Waiter, and
// receives while it waits if all queues of the CQ belong to one QP.
type cqWaiter struct {
	cq        *CQ
	solicited bool
	sole      *QP // CQ.sole when the wait began
	token     qpconn.Token
}

// waiter returns a waiter from the RNIC's free list; see also QP.helper.
func (cq *CQ) waiter(solicited bool, sole *QP) *cqWaiter {
	w := cq.rnic.cqWaiters.Get()
	if w == nil {
		w = &cqWaiter{token: qpconn.NewToken()}
	}
	w.cq, w.solicited, w.sole = cq, solicited, sole
	return w
}

func (w *cqWaiter) spare() {
	r := w.cq.rnic
	w.cq, w.sole = nil, nil
	r.cqWaiters.Put(w)
}

// Done reports whether Wait has something to return, or must check again.
func (w *cqWaiter) Done() bool {
	w.cq.mu.Lock()
	defer w.cq.mu.Unlock()
	return w.due() || w.cq.sole != w.sole
}

// due reports whether w has something to return. mu is held.
func (w *cqWaiter) due() bool { return w.cq.has(w.solicited) || w.cq.closed || w.cq.signaled }

// Enlist adds w to the waiters that wakeNext considers.
func (w *cqWaiter) Enlist() {
	w.cq.mu.Lock()
	defer w.cq.mu.Unlock()
	w.cq.waiters = append(w.cq.waiters, w)
}

// Delist removes w from the list. If w is no longer on the list it has been woken, and must
// check again: if it takes completions it then wakes the next waiter; if none are left, the
// goroutine that took them has woken the next.
func (w *cqWaiter) Delist() {
	cq := w.cq
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if i := slices.Index(cq.waiters, w); i >= 0 {
		cq.waiters = slices.Delete(cq.waiters, i, i+1)
	}
}

func (w *cqWaiter) Token() qpconn.Token { return w.token }

// Wait is like Poll but waits until there is at least one completion, or until Signal is called; only
// after a Signal does it return 0 without an error. It fails only with the error of ctx, with an error
// that matches net.ErrClosed if the CQ is closed, or if dst is empty. Completions that are already
// available are returned even if the CQ is closed or ctx has ended.
func (cq *CQ) Wait(ctx context.Context, dst []WC) (int, error) {
	return cq.wait(ctx, dst, false)
}

// WaitSolicited is like Wait but waits until a message with a solicited event has arrived or a
// work request has failed. It then returns all completions that are available, the oldest
// first.
func (cq *CQ) WaitSolicited(ctx context.Context, dst []WC) (int, error) {
	return cq.wait(ctx, dst, true)
}

// Signal makes one call of Wait or WaitSolicited return even if there is no completion: a call that
// is waiting, or else the next one. Calls of Signal that no Wait has followed yet count as one. A
// program uses Signal to make a goroutine return from Wait for a reason of its own. This costs less
// than a context that can end, for which Wait needs an allocation.
func (cq *CQ) Signal() {
	cq.mu.Lock()
	cq.signaled = true
	cq.wakeNext()
	sole := cq.sole
	cq.mu.Unlock()
	sole.nudge()
}

// wait implements Wait and WaitSolicited. cq_explore_test.go takes its steps in every order.
func (cq *CQ) wait(ctx context.Context, dst []WC, solicited bool) (int, error) {
	if len(dst) == 0 {
		return 0, fmt.Errorf("iwarp: wait: dst has length 0")
	}
	for {
		cq.mu.Lock()
		sole, closed, plan := cq.sole, cq.closed, cq.waits
		n, signaled := cq.take(dst, solicited)
		cq.mu.Unlock()
		switch {
		case n > 0 || signaled:
			freeSlots(dst[:n])
			if sole != nil && sole.sendCQ == cq {
				sole.conn.Load().Waited()
			}
			return n, nil
		case closed:
			return 0, errCQClosed
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		w := cq.waiter(solicited, sole)
		var conn *qpconn.Conn
		if sole != nil {
			conn = sole.conn.Load()
		}
		conn.Wait(ctx, w, plan)
		w.spare()
	}
}

// take removes what Wait returns: completions, and a pending Signal. mu is held.
func (cq *CQ) take(dst []WC, solicited bool) (n int, signaled bool) {
	signaled, cq.signaled = cq.signaled, false
	if cq.has(solicited) {
		n = cq.poll(dst)
		cq.wakeNext()
	}
	return n, signaled
}

// has reports whether Wait, or WaitSolicited, has something to return. On a closed CQ that is
// any completion. mu is held.
func (cq *CQ) has(solicited bool) bool {
	if solicited && !cq.closed {
		return cq.solicited > 0
	}
	return cq.wcs.Len() > 0
}
