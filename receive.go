package iwarp

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// The way in. The right to receive is with one reader at a time:
//
//	armed --ready--> running --nothing more--> staying --a waiter claims, or nothing for stayTime--> recalled
//	  |                 |  |  \--a waiter is refused--> recalled --as soon as it looks--> held by the claimant, or armed
//	  |                 |  \--no receive posted--> stalled --receive posted, or RNRWait over--> running
//	  |                 \--end of the connection--> ended
//	  \--somebody waits--> held --granted--> armed, or kept for the next to wait: see serve
//
// There is no goroutine while a connection is armed. One that cannot be armed keeps its
// reader for life.

type readerState uint32

const (
	readerIdle readerState = iota // not started
	readerArmed
	readerRunning // with a goroutine of its own
	readerStaying // the same, parked in Receive
	// Either of them, told to give the right away. The transition that does so ends this
	// state: what the reader was told never reaches the next holder.
	readerRecalled
	readerHeld // with somebody who waits
	readerKept // with nobody, for a moment
	readerStalled
	readerEnded
)

// A receiver is the right to receive of a QP and who has it.
type receiver struct {
	qp    *QP
	ready func() // made once, so that arming does not allocate
	task  func() // likewise: run in a goroutine of its own

	mu sync.Mutex
	// A readerState, which changes under mu only. The holder may look at it without the lock.
	// All that others do to it is to recall the holder: a reader that stays is woken
	// afterwards, and one that runs looks under mu before it stays.
	state atomic.Uint32
	rnr   *time.Timer // runs while stalled
	// The LLP cannot be armed: the reader parks in Receive. The holder sets it, under mu, once
	// and for good; so the holder, and who has mu, may look at it.
	parks bool

	// QPStats.ReceiveWaits: how often a message has waited for a receive to be posted. Nothing
	// is decided by it.
	waits atomic.Uint64
	// What still comes is thrown away. Set once. Whoever sets it calls wake afterwards, which
	// takes mu; whoever gives the right away looks at it under mu. So either the one sees the
	// other's state, or the other sees the flag.
	lingers atomic.Bool
	// Our half has been ended gracefully. Set once. A segment that is taken meanwhile counts as
	// one that came before; nobody waits for it.
	closed atomic.Bool
	owed   bool // the first segment has come: what the fence held can go out; the holder's alone

	// A reader that found nothing more stays for a while, because more will come.
	// Something has come. The holder sets it for each segment, the attendant clears it; a
	// segment of just then counts for before or after. All that depends on it is whether a
	// reader stays for another while.
	active atomic.Bool
	since  time.Time // when that was last seen; guarded by mu
	listed bool      // the attendant has it on its list; guarded by mu

	serving
	batch weighedBatch // the holder's alone
	// See weigh. The holder's; a sender looks at it and decides by it only who sends the rest.
	heavy atomic.Int32
}

// current is the state, for who has mu or the right to receive.
func (x *receiver) current() readerState { return readerState(x.state.Load()) }

// become changes the state. mu is held.
func (x *receiver) become(s readerState) { x.state.Store(uint32(s)) }

// start begins to receive.
func (x *receiver) start() {
	x.ready, x.task = x.wake, x.qp.rnic.tasks.task(x.run)
	x.mu.Lock()
	x.giveUp()
}

// wake is what the poller calls, and whoever wants the reader to look again.
func (x *receiver) wake() {
	x.mu.Lock()
	switch x.current() {
	case readerRunning, readerStaying, readerRecalled, readerHeld:
		x.mu.Unlock()
		x.qp.llp.Wake()
		return
	case readerArmed, readerKept, readerStalled:
	default:
		x.mu.Unlock()
		return
	}
	x.become(readerRunning)
	if x.rnr != nil {
		x.rnr.Stop()
		x.rnr = nil
	}
	x.mu.Unlock()
	x.qp.rnic.tasks.launch(x.task)
}

// rearm gives the right to receive to who has claimed it, or to the poller. It reports true if the caller
// still has it, because there is something to do or because the LLP cannot be armed.
func (x *receiver) rearm() (still bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.giveAway()
}

// giveAway is rearm with mu held. It also arms under mu: else somebody else could have the
// right by then, and be beside the poller.
func (x *receiver) giveAway() (still bool) {
	switch {
	case x.parks || x.lingers.Load() || x.qp.dead():
	case x.claimed:
		x.become(readerHeld)
		x.hand(true)
		return false
	default:
		if x.qp.llp.Arm(x.ready) {
			x.become(readerArmed)
			return false
		}
		x.parks = true
	}
	x.become(readerRunning)
	return true
}

// giveUp gives the right to receive to the poller, or to a reader if there is something
// to do. mu is held, and is released.
func (x *receiver) giveUp() {
	still := x.giveAway()
	x.mu.Unlock()
	if still {
		x.qp.rnic.tasks.launch(x.task)
	}
}

// run receives until there is nothing more.
func (x *receiver) run() {
	qp := x.qp
	defer qp.tx.dispatch()
	wait := x.parks
	for again := true; again; {
		switch {
		case qp.dead():
			x.end()
			return
		case x.lingers.Load():
			x.refuse()
			qp.tx.dispatch() // behind refuse: nobody keeps the lock for this reader any more
			qp.die(qp.llp.Discard())
			continue
		}
		sends := x.sends()
		err := qp.llp.Receive(x, parkIf(wait && !sends))
		x.tend()
		if errors.Is(err, transport.ErrWoken) {
			err = nil // what it was woken for is looked at before the next Receive
		}
		leave := err == nil && x.current() == readerRecalled
		switch {
		case sends && errors.Is(err, transport.ErrAgain):
		case errors.Is(err, transport.ErrAgain):
			wait = x.stay()
			again = wait || x.rearm()
		case leave:
			again = x.rearm()
			wait = x.parks
		default:
			again = x.received(err)
		}
	}
}

func parkIf(wait bool) transport.Wait {
	if wait {
		return transport.Park
	}
	return transport.NoWait
}

// stayTime is how long a reader stays when nothing comes.
const stayTime = 10 * time.Millisecond

// stay reports whether the reader shall park in Receive. That is how the next message
// is noticed soonest; a reader that is armed must be started first. But somebody who
// waits, and would rather receive himself, claims the right from a reader that stays.
// Where messages are further apart than stayTime it would stay in vain, and to call it
// off costs more than to arm.
func (x *receiver) stay() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	soon := now.Sub(x.since) < stayTime
	x.since = now
	if x.current() == readerRecalled || x.lingers.Load() || x.qp.dead() {
		return false
	}
	if !soon || !x.attended(stayTime/2) {
		return false
	}
	x.become(readerStaying)
	return true
}

// received looks at what Receive has returned. It reports false if the right to
// receive is gone.
func (x *receiver) received(err error) (again bool) {
	qp := x.qp
	switch {
	case err == nil:
		return true
	case errors.Is(err, transport.ErrStall):
		return x.stall(qp.cfg.RNRWait)
	case errors.Is(err, io.EOF):
		qp.peerEnded()
		return x.stall(0)
	default:
		qp.receiveFailed(err)
		return x.stall(0)
	}
}

// stall stops reading: for rnr at most, until a receive is posted; or, if rnr is 0,
// until the end of the connection, because nothing more can come. It reports true if
// the caller should look again at once.
func (x *receiver) stall(rnr time.Duration) (again bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lingers.Load() || x.qp.dead() {
		return true
	}
	if rnr != 0 && x.qp.hasReceive() {
		return true
	}
	x.forget()
	x.become(readerStalled)
	x.hand(false)
	if rnr == 0 {
		return false
	}
	x.waits.Add(1)
	x.rnr = x.patience(rnr)
	return false
}

// resume is called when a receive was posted, or when none will be.
func (x *receiver) resume() {
	x.mu.Lock()
	stalled := x.rnr != nil
	x.mu.Unlock()
	if stalled {
		x.wake()
	}
}

// end gives up the right to receive for good.
func (x *receiver) end() {
	x.mu.Lock()
	x.become(readerEnded)
	x.hand(false)
	x.mu.Unlock()
	x.qp.llp.Disarm()
	x.qp.halfEnded()
}

// Segment takes a segment from the LLP.
func (x *receiver) Segment(seq uint64, ulpdu []byte) error {
	x.arrived(seq)
	x.weigh(len(ulpdu))
	if x.closed.Load() {
		return x.qp.late(seq, ulpdu)
	}
	return x.qp.stream.Segment(seq, ulpdu)
}

// Segments takes what has come together: see [transport.Placer].
func (x *receiver) Segments(seq uint64, batch transport.SegmentBatch) error {
	if x.closed.Load() {
		return transport.EachSegment(x, seq, batch)
	}
	x.arrived(seq)
	x.batch = weighedBatch{x, batch}
	return x.qp.stream.Segments(seq, &x.batch)
}

// A weighedBatch weighs the segments of a batch.
type weighedBatch struct {
	x *receiver
	transport.SegmentBatch
}

func (b *weighedBatch) Next() []byte {
	u := b.SegmentBatch.Next()
	if u != nil {
		b.x.weigh(len(u))
	}
	return u
}

// arrived notes that something has come.
func (x *receiver) arrived(seq uint64) {
	x.awake()
	if !x.active.Load() {
		x.active.Store(true)
	}
	if seq == 0 {
		x.owed = true
	}
}

// Predict, Unpin and Placed let Read Responses go straight into place: see
// [transport.Placer].
func (x *receiver) Predict(dst []transport.PredictedSegment, size, room int, alone bool) []transport.PredictedSegment {
	return x.qp.stream.Predict(dst, size, room, alone)
}

func (x *receiver) Unpin() { x.qp.stream.Unpin() }

// Placed is Segment for one that has come as predicted.
func (x *receiver) Placed(seq uint64, p *transport.PredictedSegment) error {
	x.arrived(seq)
	x.weigh(len(p.Payload))
	return x.qp.stream.Placed(seq, p)
}

// tend does what the segments that have come make necessary. It never blocks: while
// the network takes no more of what is to be sent it only leaves word.
func (x *receiver) tend() {
	qp := x.qp
	qp.rq.push()
	if x.lingers.Load() || qp.dead() {
		return
	}
	qp.checkOverflow()
	if x.owed || qp.closing.Load() || x.sends() || qp.stream.Pending() {
		x.owed = false
		if p := x.pace(); qp.tx.take() {
			qp.tx.run(p)
		}
	}
}
