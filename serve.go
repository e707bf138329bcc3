package iwarp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// Whoever waits for a completion of a QP receives for it meanwhile, if nobody else
// does: the message that ends the wait is then placed and delivered by the goroutine
// that wants it, which saves waking one to wake the other.
//
// To arm and disarm around every wait costs two system calls. So the right to receive
// is kept, neither armed nor used, between the waits of one who comes back at once
// again and again. The attendant sees to it that it is not kept long.

// A wish is what somebody waits for. granted may be asked at any time.
type wish interface{ granted() bool }

const (
	// steadyGap is how soon a steady waiter is back, and steadyTimes how often that
	// must have been so. One who comes late has half of it left.
	steadyGap   = 200 * time.Microsecond
	steadyTimes = 8
	// keepTime is about how long the right to receive is kept for a waiter that does
	// not come back.
	keepTime = 500 * time.Microsecond
	// foreignTimes is how often in a row somebody else, who sends, may grant what a
	// waiter waits for until the next ones, foreignRest in number, just sleep: to be
	// woken from receiving costs more.
	foreignTimes = 8
	foreignRest  = 4096
)

// serving is the part of a receiver that is about those who wait.
type serving struct {
	// The holder's alone.
	wish wish
	ctx  context.Context

	// asleep is set while the holder parks, or is about to: then it must be woken
	// when its wish is granted by somebody else. The holder sets it and then looks whether
	// the wish is granted; whoever grants it does so and then looks at asleep. So at least one
	// of them sees the other. A holder that is woken in vain looks again and sleeps on.
	asleep atomic.Bool
	parked bool // asleep, as the holder knows it
	// It was woken so. All that depends on it is whether the next waiters receive or sleep.
	nudged atomic.Bool

	// Guarded by receiver.mu.
	//
	// handed answers a claim: whether the right was handed over. There are as many answers as
	// claims that were not withdrawn. Where a claimant is late, another may take its answer,
	// or withdraw in its place; it then gets the other's.
	handed  chan bool
	claimed bool      // a waiter wants the right from a reader that is recalled
	left    time.Time // when it was last let go
	steady  int       // how often the next waiter came within steadyGap
	foreign int       // how often in a row others have granted the wish, and rests since
}

// serve receives in the goroutine of somebody who waits, until w is granted or ctx
// ends; meanwhile it waits by plan. It reports false, having done nothing, if the right to
// receive is not free or ctx has ended; w need not be granted if the right is lost on the
// way.
func (x *receiver) serve(ctx context.Context, w wish, plan waitPlan) bool {
	if ctx.Err() != nil || !x.hold(ctx) {
		return false
	}
	x.wish, x.ctx = w, ctx
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, x.qp.llp.Wake)()
	}
	held := true
	for held && !x.satisfied() && !x.lingers.Load() && !x.qp.dead() {
		if plan.poll > 0 {
			held = x.poll(plan.poll)
			if !held || x.satisfied() {
				break
			}
		}
		err := x.qp.llp.Receive(x, plan.sleep)
		x.tend()
		held = errors.Is(err, transport.ErrWoken) || x.received(err)
	}
	if held {
		x.letGo()
	}
	return true
}

// poll receives without parking, until the wish is granted or d is over. It reports
// false if the right to receive is gone.
func (x *receiver) poll(d time.Duration) (held bool) {
	for start := time.Now(); time.Since(start) < d; {
		err := x.qp.llp.Receive(x, transport.NoWait)
		x.tend()
		switch {
		case errors.Is(err, transport.ErrAgain):
			yield()
		case !x.received(err):
			return false
		}
		if x.wish.granted() || x.lingers.Load() || x.qp.dead() {
			return true
		}
	}
	return true
}

// hold takes the right to receive if it is free, or has it from a reader that is only
// staying.
func (x *receiver) hold(ctx context.Context) bool {
	x.mu.Lock()
	if x.parks {
		x.mu.Unlock()
		return false
	}
	armed := x.current() == readerArmed
	if x.foreign >= foreignTimes {
		if x.foreign++; x.foreign < foreignTimes+foreignRest {
			x.mu.Unlock()
			return false
		}
		x.foreign = 0
	}
	switch x.current() {
	case readerArmed, readerKept:
	case readerStaying:
		return x.claim(ctx)
	case readerRunning:
		x.become(readerRecalled)
		fallthrough
	default:
		x.mu.Unlock()
		return false
	}
	x.become(readerHeld)
	if time.Since(x.left) < steadyGap {
		x.steady = min(x.steady+1, 2*steadyTimes)
	} else {
		x.steady /= 2
	}
	x.mu.Unlock()
	if armed {
		x.qp.llp.Disarm()
	}
	return true
}

// claim has a reader that stays hand over the right to receive, which it does at once,
// unless something else has come up meanwhile. mu is held, and is released.
func (x *receiver) claim(ctx context.Context) bool {
	if x.handed == nil {
		x.handed = make(chan bool, 1)
	}
	x.claimed = true
	x.become(readerRecalled)
	x.steady = 0
	x.mu.Unlock()
	x.qp.llp.Wake()
	select {
	case ok := <-x.handed:
		return ok
	case <-ctx.Done():
	}
	x.mu.Lock()
	withdrawn := x.claimed
	x.claimed = false
	x.mu.Unlock()
	return !withdrawn && <-x.handed
}

// hand answers a claim. mu is held.
func (x *receiver) hand(ok bool) {
	if x.claimed {
		x.claimed = false
		x.handed <- ok
	}
}

// refuse answers a claim on a connection that ends, and takes no more.
func (x *receiver) refuse() {
	x.mu.Lock()
	x.become(readerRunning)
	x.hand(false)
	x.mu.Unlock()
}

// letGo gives the right to receive back.
func (x *receiver) letGo() {
	x.forget()
	x.mu.Lock()
	x.left = time.Now()
	if x.nudged.Swap(false) {
		x.foreign++
	} else {
		x.foreign = 0
	}
	ends := x.lingers.Load() || x.qp.dead()
	if !ends && x.steady >= steadyTimes && x.attended(keepTime) {
		x.become(readerKept)
		x.mu.Unlock()
		return
	}
	x.giveUp()
}

// forget has the holder wait for nothing any more. It comes before the right is given away.
func (x *receiver) forget() {
	x.wish, x.ctx = nil, nil
	x.awake()
}

// satisfied tells the holder whether it may go.
func (x *receiver) satisfied() bool {
	if x.wish == nil {
		return false
	}
	if !x.parked {
		x.parked = true
		x.asleep.Store(true) // before looking: whoever grants looks after granting
	}
	if x.wish.granted() || x.ctx.Err() != nil {
		x.awake()
		return true
	}
	return false
}

// awake tells that the holder is not parked.
func (x *receiver) awake() {
	if x.parked {
		x.parked = false
		x.asleep.Store(false)
	}
}

// nudge wakes the holder, if it is parked, to look whether its wish is granted.
func (x *receiver) nudge() {
	if x.asleep.Load() {
		x.nudged.Store(true)
		x.qp.llp.Wake()
	}
}
