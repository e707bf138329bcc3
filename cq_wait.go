package iwarp

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// A waitPlan is how a goroutine waits that receives meanwhile: it polls for a time, and then
// sleeps.
type waitPlan struct {
	poll  time.Duration
	sleep transport.Wait // Park or Block
}

// SetBusyPoll has Wait, and the blocking helpers, poll the connection for at most d
// before they sleep. That takes a processor meanwhile and saves the time that waking up
// takes: worth it for short answers on a machine with processors to spare. It works
// where all queues of the CQ are one QP's, on a TCP connection. 0, the default: they
// sleep at once.
func (cq *CQ) SetBusyPoll(d time.Duration) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.plan.poll = d
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
	cq.plan.sleep = transport.Park
	if m == WaitBlock {
		cq.plan.sleep = transport.Block
	}
}

func (cq *CQ) waitPlan() waitPlan {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.plan
}

// A cqWaiter is a goroutine parked in Wait or WaitSolicited.
type cqWaiter struct {
	ready     chan struct{} // of capacity 1
	solicited bool
}

// waiter borrows a waiter; see also RNIC.waiter.
func (cq *CQ) waiter(solicited bool) *cqWaiter {
	w := cq.rnic.cqWaiters.Get()
	if w == nil {
		w = &cqWaiter{ready: make(chan struct{}, 1)}
	}
	w.solicited = solicited
	return w
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
		sole, closed, plan := cq.sole, cq.closed, cq.plan
		tx := cq.sender(solicited)
		n := 0
		if cq.has(solicited) {
			n = cq.take(dst)
			cq.passOn()
		}
		cq.mu.Unlock()
		switch {
		case n > 0:
			if tx != nil {
				tx.waits.Add(1)
			}
			return n, nil
		case closed:
			return 0, errCQClosed
		case tx != nil && ctx.Err() == nil && tx.goOn():
			continue
		}
		if tx != nil {
			tx.park()
		}
		err := cq.sleep(ctx, solicited, sole, plan)
		if tx != nil {
			tx.unpark()
		}
		if err != nil {
			return 0, err
		}
	}
}

// sender is the sender that who waits can lend a hand: he comes for what it completes.
// mu is held.
func (cq *CQ) sender(solicited bool) *sender {
	if solicited || cq.sole == nil || cq.sole.sendCQ != cq {
		return nil
	}
	return &cq.sole.tx
}

// sleep returns when the caller should look again. It receives meanwhile if all queues
// are those of sole.
func (cq *CQ) sleep(ctx context.Context, solicited bool, sole *QP, plan waitPlan) error {
	if sole != nil && sole.rx.serve(ctx, cq.wish(solicited), plan) {
		if err := ctx.Err(); err != nil && !cq.wish(solicited).granted() {
			return err
		}
		return nil
	}
	cq.mu.Lock()
	if cq.has(solicited) || cq.closed {
		cq.mu.Unlock()
		return nil
	}
	w := cq.waiter(solicited)
	cq.waiters = append(cq.waiters, w)
	cq.mu.Unlock()

	select {
	case <-w.ready:
		cq.rnic.cqWaiters.Put(w)
		return nil
	case <-ctx.Done():
		cq.forget(w)
		return ctx.Err()
	}
}

// cqWish and solicitedWish are what Wait and WaitSolicited wait for.
type (
	cqWish        struct{ cq *CQ }
	solicitedWish struct{ cq *CQ }
)

func (w cqWish) granted() bool        { return w.cq.granted(false) }
func (w solicitedWish) granted() bool { return w.cq.granted(true) }

func (cq *CQ) wish(solicited bool) wish {
	if solicited {
		return solicitedWish{cq}
	}
	return cqWish{cq}
}

func (cq *CQ) granted(solicited bool) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.has(solicited)
}

// has reports whether Wait, or WaitSolicited, has something to return. Of a closed CQ that
// is whatever is left. mu is held.
func (cq *CQ) has(solicited bool) bool {
	if solicited && !cq.closed {
		return cq.solicited > 0
	}
	return cq.n > 0
}

// forget takes w off the list. If w was just woken, its turn goes to the next.
func (cq *CQ) forget(w *cqWaiter) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	for i, o := range cq.waiters {
		if o == w {
			cq.waiters = append(cq.waiters[:i], cq.waiters[i+1:]...)
			cq.rnic.cqWaiters.Put(w)
			return
		}
	}
	<-w.ready
	cq.rnic.cqWaiters.Put(w)
	cq.passOn()
}
