package qpconn

import "slices"

// An arbiter decides which goroutine receives and which one sends on a connection. It is
// pure: no goroutine, lock, clock or system call. Its user holds one mutex around each
// method; each method takes one event, and returns what is to be done.
//
// The right to receive is where Rx says. A holder is the reader, a goroutine that was
// started to receive, or a waiter, a goroutine that waits for the outcome of some work and
// receives for itself meanwhile:
//
//	state      with     event              next state and action
//	Armed      nobody   Ready              Busy(reader), Disarm, StartReader
//	                    Come(w)            Busy(w), Disarm, Read
//	Reserved   nobody   Come(w)            Busy(w), Read
//	                    Sweep              Armed, Arm
//	Stalled    nobody   Come(w)            Stalled, w is queued
//	                    Start              Busy(first queued), Grant; or Armed, Arm
//	                    Resume             Busy(first queued), Grant; or Busy(reader), StartReader
//	Busy       holder   Come(w)            Busy, w is queued
//	                    Empty, a waiter    Parked, Park
//	                    Empty, the reader  Busy(first queued), Grant; or Parked, Park, if it lingers; or Armed, Arm
//	                    Stall              Stalled; a waiter is queued in front
//	                    Over               Over; or, after Discard, Busy(reader), StartReader
//	           reader   Discarded          Over
//	                    Leave(holder)      Busy(first queued), Grant; or Reserved, SweepLater; or Armed, Arm,
//	                                       and SweepLater if the right to send is Offered
//	Parked     holder   Found, Nudge       Busy, Wake with Nudge
//	                    Come(w)            Recalled, Wake, if the reader holds; w is queued
//	                    Sweep              Recalled, Wake, if the reader holds
//	Recalled   reader   Found              Recalled: what there is to read is read
//	                    Empty              as from Busy, without lingering
//	Over       nobody   Discard            Busy(reader), StartReader
//	Ended      nobody
//
// The right to send is where Tx says:
//
//	state        with      event            next state and action
//	Idle         nobody    Post             Sending, Send
//	Sending      caller    Post             SendingMore
//	                       Sent             Idle
//	                       Share            Offered, Wake, if the right to receive is held; Offered, if
//	                                        it is reserved; Offered, SweepLater, if a waiter is
//	                                        expected; else Writer, StartWriter
//	                       Full             Writer, StartWriter
//	SendingMore  caller    Sent             Sending, Send
//	                       Share, Full      as from Sending
//	Offered      nobody    Post, Come,      Sending, Send
//	                       Empty
//	                       Sweep; the right Writer, StartWriter
//	                       to receive rests
//	Writer       writer    Post             WriterMore
//	                       Sent             Idle
//	                       Share            as from Sending, but Send in place of StartWriter
//	WriterMore   writer    Sent             Writer, Send
//	                       Share            as from Writer
//	Closed       nobody
//
// Discard and Close are events of each state. After Discard waiters receive no more: the
// reader does, and throws away what comes. When there is no more it closes the connection, and
// says Discarded. After Close each right ends when its holder
// finds that out, by Over and Broken, or at once if there is none; Finish is due when both
// have ended.
//
// What the users of an arbiter owe:
//
//  1. Wake and Grant are hints, which may be late, or lost on a holder that has gone on. A
//     goroutine that has one looks at what it waits for and at Holds, and sleeps again if
//     it has neither.
//  2. A predicate is set first, and Nudge is called second. A waiter that Empty has told
//     to park looks at its predicate once more before it does.
//  3. Work is queued first, and Post is called second.
//  4. A receive is posted first, and Resume is called second. A holder calls Stall first,
//     and looks for a receive second; it calls Resume itself if there is one.
//  5. A waiter that Come has not told to read registers for its predicate, looks once more,
//     and then sleeps. It calls Leave however the wait ends.
//  6. Arm and Disarm are done before the mutex is released; all else may be done later.
//     A failed Arm is told by ArmFailed at once.
//  7. Ready and Sweep may come late, twice, or for no reason. Close comes after the
//     connection was closed, so that each system call on it returns.
type arbiter[W comparable] struct {
	rx     rxState
	tx     txState
	phase  phase
	noArm  bool // the connection cannot be armed: its reader stays, parked in Receive, and waiters sleep
	holder W    // of the right to receive, from Busy on; the zero W is the reader
	queue  []W  // waiters that would receive, the first one first
}

// rxState is where the right to receive is.
type rxState uint8

const (
	rxArmed    rxState = iota // with nobody: the poller calls Ready
	rxReserved                // with nobody, and not armed: a waiter is expected back at once
	rxStalled                 // with nobody, until a receive is posted, or the connection starts
	rxOver                    // with nobody: nothing more will come
	rxEnded                   // with nobody, for good
	rxBusy                    // with the holder, which reads
	rxParked                  // with the holder, which waits for input
	rxRecalled                // with the reader, which was parked and is to give the right up
)

// txState is where the right to send is.
type txState uint8

const (
	txIdle        txState = iota // with nobody: there is nothing to send
	txSending                    // with a goroutine that never waits for the network
	txSendingMore                // the same, and work was queued since it looked
	txOffered                    // with nobody: there is more to send, for the next goroutine to come
	txWriter                     // with the writer, a goroutine that may wait for the network
	txWriterMore                 // the same, and work was queued since it looked
	txClosed                     // with nobody, for good
)

// phase is how far the end of the connection has got.
type phase uint8

const (
	phaseOpen    phase = iota
	phaseDiscard       // what still comes is thrown away
	phaseClosed        // nothing is received or sent any more
)

// do is a set of actions.
type do uint16

const (
	// What the caller itself does next.
	doRead do = 1 << iota // it holds the right to receive: read what there is
	doPark                // it holds the right to receive: wait for input or Wake
	doSend                // it holds the right to send: send one share

	// Before the mutex is released.
	doArm
	doDisarm

	// Afterwards, in any order.
	doStartReader // start a goroutine that reads
	doStartWriter // start a goroutine that sends, and may wait for the network
	doWake        // end the holder's wait for input, or the next one if it does not wait yet
	doGrant       // tell the holder, a waiter, that it holds the right to receive
	doSweepLater  // call Sweep in a while
	doFinish      // both rights have ended; it is due once
)

// held reports whether a goroutine holds the right to receive.
func (a *arbiter[W]) held() bool { return a.rx >= rxBusy }

// holds reports whether w holds the right to receive.
func (a *arbiter[W]) holds(w W) bool { return a.held() && a.holder == w }

// readerHolds reports whether the reader does.
func (a *arbiter[W]) readerHolds() bool { return a.holds(*new(W)) }

// come: the waiter w would receive for itself. Without doRead in the answer it sleeps.
func (a *arbiter[W]) come(w W) do {
	d := a.takeOffer()
	switch {
	case a.phase != phaseOpen, a.noArm, a.rx == rxOver:
		return d
	case a.rx == rxArmed, a.rx == rxReserved:
		return d | doRead | a.hold(w)
	}
	a.queue = append(a.queue, w)
	if a.rx == rxParked && a.readerHolds() {
		a.rx = rxRecalled
		d |= doWake
	}
	return d
}

// leave: the waiter w has what it waits for, or does not wait any longer. reserve: it is
// expected back at once.
func (a *arbiter[W]) leave(w W, reserve bool) do {
	if a.holds(w) {
		return a.pass(reserve)
	}
	if i := slices.Index(a.queue, w); i >= 0 {
		a.queue = slices.Delete(a.queue, i, i+1)
	}
	return 0
}

// start: the connection is established. It is stalled until then.
func (a *arbiter[W]) start() do {
	switch {
	case a.rx != rxStalled:
		return 0
	case len(a.queue) > 0:
		return a.next()
	}
	return a.rest(rxArmed)
}

// ready: the poller tells of input.
func (a *arbiter[W]) ready() do {
	if a.rx != rxArmed {
		return 0
	}
	return a.startReader()
}

// armFailed: the connection could not be armed, and never can.
func (a *arbiter[W]) armFailed() do {
	a.noArm = true
	return a.startReader()
}

// empty: the holder has read what there was. linger: a reader would wait for more.
func (a *arbiter[W]) empty(linger bool) do {
	if d := a.takeOffer(); d != 0 {
		return d | doRead
	}
	reader := a.readerHolds()
	switch {
	case a.phase != phaseOpen && !reader:
		return a.pass(false)
	case !reader, a.phase != phaseOpen, a.noArm:
		a.rx = rxParked
		return doPark
	case len(a.queue) > 0, a.rx == rxRecalled, !linger:
		return a.pass(false)
	}
	a.rx = rxParked
	return doPark | doSweepLater
}

// found: the holder has waited for input, and reads again.
func (a *arbiter[W]) found() do {
	if a.rx == rxParked {
		a.rx = rxBusy
	}
	return doRead
}

// stall: a message has come that needs a receive, and the holder has found none.
func (a *arbiter[W]) stall() do {
	if a.phase != phaseOpen {
		return doRead // which finds that out
	}
	if !a.readerHolds() {
		a.queue = slices.Insert(a.queue, 0, a.holder)
	}
	return a.rest(rxStalled)
}

// resume: a receive was posted, or a message shall wait for one no longer.
func (a *arbiter[W]) resume() do {
	if a.rx != rxStalled {
		return 0
	}
	return a.next()
}

// over: the holder has found the end of the stream, or an error, in a read that may have begun
// before Discard.
func (a *arbiter[W]) over() do {
	if a.phase != phaseOpen {
		return a.pass(false)
	}
	a.queue = a.queue[:0]
	return a.rest(rxOver)
}

// discarded: the reader has thrown away all that came after Discard, and has closed the
// connection, unless another goroutine is about to.
func (a *arbiter[W]) discarded() do {
	if a.phase == phaseClosed {
		return a.pass(false)
	}
	a.rx = rxOver
	return 0
}

// sweep: a right has been reserved or offered, or a reader has lingered, for long enough.
func (a *arbiter[W]) sweep() do {
	switch {
	case a.rx == rxReserved:
		return a.rest(rxArmed)
	case !a.held():
		return a.dropOffer()
	case a.rx == rxParked && a.readerHolds():
		a.rx = rxRecalled
		return doWake
	}
	return 0
}

// nudge: what a waiter waits for may have come, or its context has ended.
func (a *arbiter[W]) nudge() do {
	if a.readerHolds() {
		return 0
	}
	return a.wake()
}

// discard: the stream ends with a Terminate. From now on the reader throws away what comes.
func (a *arbiter[W]) discard() do {
	if a.phase != phaseOpen {
		return 0
	}
	a.phase, a.queue = phaseDiscard, a.queue[:0]
	d := a.wake() | a.dropOffer()
	if !a.held() {
		d |= a.startReader()
	}
	return d
}

// close: the connection was closed, and each goroutine that waits in it returns.
func (a *arbiter[W]) close() do {
	if a.phase == phaseClosed {
		return 0
	}
	a.phase, a.queue = phaseClosed, a.queue[:0]
	d := a.wake()
	if a.tx == txIdle || a.tx == txOffered {
		a.tx = txClosed
	}
	if !a.held() {
		d |= a.enter(rxEnded) | a.finish()
	}
	return d
}

// post: something was queued to be sent.
func (a *arbiter[W]) post() do {
	switch a.tx {
	case txIdle, txOffered:
		a.tx = txSending
		return doSend
	case txSending:
		a.tx = txSendingMore
	case txWriter:
		a.tx = txWriterMore
	case txSendingMore, txWriterMore, txClosed:
	}
	return 0
}

// sent: the sender has found nothing more to send.
func (a *arbiter[W]) sent() do {
	switch {
	case a.phase == phaseClosed:
		return a.broken()
	case a.tx == txSendingMore:
		a.tx = txSending
		return doSend
	case a.tx == txWriterMore:
		a.tx = txWriter
		return doSend
	}
	a.tx = txIdle
	return 0
}

// share: the sender has sent one share without waiting, and there is more. expected: a waiter
// will come at once.
func (a *arbiter[W]) share(expected bool) do {
	if a.phase == phaseClosed {
		return doSend // which finds that out
	}
	from := a.tx
	a.tx = txOffered
	switch {
	case a.phase == phaseDiscard:
	case a.held():
		return a.wake()
	case a.rx == rxReserved:
		return 0
	case expected:
		return doSweepLater
	}
	if from == txWriter || from == txWriterMore {
		return a.offerTo(txWriter, doSend)
	}
	return a.dropOffer()
}

// full: the network takes no more from a sender that must not wait for it.
func (a *arbiter[W]) full() do {
	a.tx = txWriter
	return doStartWriter
}

// broken: the sender can send no more.
func (a *arbiter[W]) broken() do {
	a.tx = txClosed
	return a.finish()
}

// pass gives up the right to receive of a holder that has read what there was, or of a waiter,
// which may leave an offer: it may be back soon.
func (a *arbiter[W]) pass(reserve bool) do {
	switch {
	case a.phase == phaseClosed:
		a.rx = rxEnded
		return a.finish()
	case a.phase == phaseDiscard:
		return a.startReader()
	case len(a.queue) > 0:
		return a.next()
	case reserve:
		a.rx = rxReserved
		return doSweepLater
	case a.tx == txOffered:
		a.rx = rxArmed
		return doArm | doSweepLater
	}
	return a.rest(rxArmed)
}

// next gives the right to receive to the first waiter in the queue, or to a reader.
func (a *arbiter[W]) next() do {
	if len(a.queue) == 0 {
		return a.startReader()
	}
	w := a.queue[0]
	a.queue = slices.Delete(a.queue, 0, 1)
	return doGrant | a.hold(w)
}

func (a *arbiter[W]) startReader() do { return doStartReader | a.hold(*new(W)) }

func (a *arbiter[W]) hold(w W) do {
	a.holder = w
	return a.enter(rxBusy)
}

// enter changes the state and keeps the poller's that of the arbiter. Where the poller has
// told of input already, Disarm finds nothing to do.
func (a *arbiter[W]) enter(to rxState) do {
	from := a.rx
	a.rx = to
	if from == rxArmed {
		return doDisarm
	}
	return 0
}

// rest leaves the right to receive with nobody. Then nobody is expected to take an offer.
func (a *arbiter[W]) rest(at rxState) do {
	a.rx = at
	d := a.dropOffer()
	if at == rxArmed {
		d |= doArm
	}
	return d
}

// wake makes a parked holder look around.
func (a *arbiter[W]) wake() do {
	if a.rx != rxParked {
		return 0
	}
	a.rx = rxBusy
	return doWake
}

// takeOffer has the caller send what was offered, and dropOffer the writer.
func (a *arbiter[W]) takeOffer() do { return a.offerTo(txSending, doSend) }
func (a *arbiter[W]) dropOffer() do { return a.offerTo(txWriter, doStartWriter) }

func (a *arbiter[W]) offerTo(to txState, d do) do {
	if a.tx != txOffered {
		return 0
	}
	a.tx = to
	return d
}

func (a *arbiter[W]) finish() do {
	if a.rx == rxEnded && a.tx == txClosed {
		return doFinish
	}
	return 0
}
