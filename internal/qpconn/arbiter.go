package qpconn

import "slices"

// An arbiter decides which goroutine receives and which one sends on a connection. It is a
// pure state machine: it has no goroutine, lock, clock or system call. Its user holds one
// mutex around each method. Each method handles one event, and returns the actions that its
// user must perform.
//
// The state rx says which goroutine has the right to receive. The holder is either the reader,
// a goroutine started to receive, or a waiter, a goroutine that receives while it waits for the
// outcome of some work:
//
//	state      holder   event              next state and action
//	Armed      none     Ready              Busy(reader), Disarm, StartReader
//	                    Come(w)            Busy(w), Disarm, Read
//	Reserved   none     Come(w)            Busy(w), Read
//	                    Sweep              Armed, Arm
//	Unstarted  none     Come(w)            Unstarted, w is queued
//	                    Start              Busy(first queued), Grant; or Armed, Arm
//	Stalled    none     Come(w)            Stalled, w is queued
//	                    Resume             Busy(reader), StartReader
//	Busy       any      Come(w)            Busy, w is queued
//	                    Empty, a waiter    Parked, Park
//	                    Empty, the reader  Busy(first queued), Grant; or Parked, Park, SweepLater, if it
//	                                       lingers; or Armed, Arm
//	                    Stall              Stalled; a waiter is queued in front; after Discard Busy; after Close as Over
//	                    Over               Over; or, after Discard, Busy(reader), StartReader
//	           reader   Discarded          Over
//	           any      Leave(holder)      Busy(first queued), Grant; or Reserved, SweepLater; or Armed, Arm,
//	                                       and SweepLater if the right to send is Offered
//	Parked     any      Found              Busy
//	           waiter   Nudge              Busy, Wake
//	                    Come(w)            Recalled, Wake, if the reader holds; w is queued
//	                    Sweep              Recalled, Wake, if the reader holds
//	Recalled   reader   Found              Recalled: the reader reads the remaining input
//	                    Empty              as from Busy, without lingering
//	Over       none     Discard            Busy(reader), StartReader
//	Ended      none
//
// The state tx says which goroutine has the right to send:
//
//	state        holder    event            next state and action
//	Idle         none      Post             Sending, Send
//	Sending      caller    Post             SendingMore
//	                       Sent             Idle
//	                       Share            Offered, Wake, if the right to receive is held; Offered, if
//	                                        it is reserved; Offered, SweepLater, if a waiter is
//	                                        expected and the connection can be armed; else Writer,
//	                                        StartWriter
//	                       Full             Writer, StartWriter
//	SendingMore  caller    Sent             Sending, Send
//	                       Share, Full      as from Sending
//	Offered      none      Post, Come,      Sending, Send
//	                       Empty
//	                       Sweep; the right Writer, StartWriter
//	                       to receive loses
//	                       its holder
//	Writer       writer    Post             WriterMore
//	                       Sent             Idle
//	                       Share            as from Sending, but Send instead of StartWriter
//	WriterMore   writer    Sent             Writer, Send
//	                       Share            as from Writer
//	Closed       none
//
// Discard and Close may occur in each state. After Discard only the reader receives; it
// discards all input up to the end of the stream, then closes the connection and calls
// Discarded. After Close each right ends at once if it has no holder, and otherwise when the
// holder calls Over or Broken, because its system call fails. Finish is returned once, when
// both rights have ended.
//
// The users of an arbiter must follow these rules:
//
//  1. Wake and Grant are hints. They may be late, or reach a holder that has already
//     continued. A goroutine that receives one checks its predicate and Holds, and sleeps
//     again if both are false.
//  2. Set a predicate before calling Nudge. A waiter that Empty has told to park checks its
//     predicate once more before it parks.
//  3. Queue work before calling Post.
//  4. Post a receive before calling Resume. A holder calls Stall before it checks for a
//     receive; if it finds one it calls Resume itself.
//  5. A waiter that Come has not told to read registers for its predicate, checks it once
//     more, and then sleeps. It always calls Leave when its wait ends.
//  6. Perform Arm and Disarm before releasing the mutex; all other actions may follow later.
//     If Arm fails, call ArmFailed at once.
//  7. Ready and Sweep may be late, repeated or spurious. Call Close only after the
//     connection was closed, so that each system call on it returns.
type arbiter[W comparable] struct {
	rx     rxState
	tx     txState
	phase  phase
	noArm  bool // the connection cannot be armed: its reader stays, parked in Receive, and waiters sleep
	holder W    // of the right to receive, valid from rxBusy on; the zero W is the reader
	queue  []W  // waiters that want to receive, in order of arrival
}

// rxState is the state of the right to receive. The order has a meaning: no goroutine holds the right before
// rxBusy, and of these states rxOver and rxEnded, in which no input is expected, are the last ones.
type rxState uint8

const (
	rxArmed     rxState = iota // no holder: the poller calls Ready
	rxReserved                 // no holder, and not armed: a waiter is expected back at once
	rxUnstarted                // no holder until the connection starts
	rxStalled                  // no holder until a receive is posted
	rxOver                     // no holder: no more input will arrive
	rxEnded                    // no holder any more
	rxBusy                     // the holder reads
	rxParked                   // the holder waits for input
	rxRecalled                 // the holder is the reader, which was parked and must give up the right
)

// txState is the state of the right to send.
type txState uint8

const (
	txIdle        txState = iota // no holder: there is nothing to send
	txSending                    // the holder never waits for the network
	txSendingMore                // the same, and work was queued since it checked
	txOffered                    // no holder: the next goroutine that calls Post, Come or Empty sends the rest
	txWriter                     // the holder is the writer, a goroutine that may wait for the network
	txWriterMore                 // the same, and work was queued since it checked
	txClosed                     // no holder any more
)

// phase says how much of the connection still works.
type phase uint8

const (
	phaseOpen    phase = iota
	phaseDiscard       // input is discarded
	phaseClosed        // the connection was closed
)

// do is a set of actions.
type do uint16

const (
	// Actions of the calling goroutine itself.
	doRead do = 1 << iota // it holds the right to receive: read without waiting
	doPark                // it holds the right to receive: wait for input or Wake
	doSend                // it holds the right to send: send one share

	// Actions before the mutex is released.
	doArm
	doDisarm

	// Actions after that, in any order.
	doStartReader // start the reader
	doStartWriter // start the writer
	doWake        // end the holder's wait for input, or its next wait if it is not waiting yet
	doGrant       // tell the holder, a waiter, that it holds the right to receive
	doSweepLater  // call Sweep after some time
	doFinish      // both rights have ended; returned once
)

// held reports whether a goroutine holds the right to receive.
func (a *arbiter[W]) held() bool { return a.rx >= rxBusy }

// holds reports whether w holds the right to receive.
func (a *arbiter[W]) holds(w W) bool { return a.held() && a.holder == w }

// readerHolds reports whether the reader holds the right to receive.
func (a *arbiter[W]) readerHolds() bool { return a.holds(*new(W)) }

// come: the waiter w wants to receive. If the result lacks doRead, w sleeps.
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

// leave: the wait of w is over, or was cancelled. With reserve, w is expected back at once, and
// the right to receive is reserved for it.
func (a *arbiter[W]) leave(w W, reserve bool) do {
	if a.holds(w) {
		return a.pass(reserve)
	}
	if i := slices.Index(a.queue, w); i >= 0 {
		a.queue = slices.Delete(a.queue, i, i+1)
	}
	return 0
}

// start: the connection is established. Its state is rxUnstarted until then.
func (a *arbiter[W]) start() do {
	switch {
	case a.rx != rxUnstarted:
		return 0
	case len(a.queue) > 0:
		return a.next()
	}
	return a.rest(rxArmed)
}

// ready: the poller reports input.
func (a *arbiter[W]) ready() do {
	if a.rx != rxArmed {
		return 0
	}
	return a.startReader()
}

// armFailed: the connection could not be armed, and is never armed again.
func (a *arbiter[W]) armFailed() do {
	a.noArm = true
	return a.startReader()
}

// empty: the holder has found no more input. With linger, a reader waits for more input before
// it gives up the right.
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

// found: the wait of the holder for input has ended, and it reads again.
func (a *arbiter[W]) found() do {
	if a.rx == rxParked {
		a.rx = rxBusy
	}
	return doRead
}

// stall: a message has arrived that needs a receive, and none is posted.
func (a *arbiter[W]) stall() do {
	switch a.phase {
	case phaseOpen:
	case phaseDiscard:
		return doRead // the next read handles the phase
	case phaseClosed:
		return a.pass(false) // another read would find the message again: the LLP still has it
	}
	if !a.readerHolds() {
		a.queue = slices.Insert(a.queue, 0, a.holder)
	}
	return a.rest(rxStalled)
}

// resume: a receive was posted, or the stalled message must not wait for one any longer. The
// reader tries the message again, even if waiters are queued: a waiter may leave before it has
// done so, and the poller does not report a message that was already read.
func (a *arbiter[W]) resume() do {
	if a.rx != rxStalled {
		return 0
	}
	return a.startReader()
}

// over: a read of the holder, which may have begun before Discard, has returned the end of the
// stream or an error.
func (a *arbiter[W]) over() do {
	if a.phase != phaseOpen {
		return a.pass(false)
	}
	a.queue = a.queue[:0]
	return a.rest(rxOver)
}

// discarded: the reader has discarded all input after Discard, and has closed the connection,
// unless another goroutine is about to close it.
func (a *arbiter[W]) discarded() do {
	if a.phase == phaseClosed {
		return a.pass(false)
	}
	a.rx = rxOver
	return 0
}

// sweep: the time for which a right was reserved or offered, or a reader lingered, is over.
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

// nudge: the predicate of a waiter may be true, or its context has ended.
func (a *arbiter[W]) nudge() do {
	if a.readerHolds() {
		return 0
	}
	return a.wake()
}

// discard: the stream ends with a Terminate. From now on the reader discards all input.
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

// close: the connection was closed, so each system call on it returns.
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

// post: work was queued.
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

// share: the sender has sent one share without waiting, and there is more to send. With
// expected, a waiter that can send the rest is expected at once. A connection that cannot be armed
// must not need the Sweeper, so its sender continues.
func (a *arbiter[W]) share(expected bool) do {
	if a.phase == phaseClosed {
		return doSend // it fails, and the sender calls broken
	}
	from := a.tx
	a.tx = txOffered
	switch {
	case a.phase == phaseDiscard:
	case a.held():
		return a.wake()
	case a.rx == rxReserved:
		return 0
	case expected && !a.noArm:
		return doSweepLater
	}
	if from == txWriter || from == txWriterMore {
		return a.offerTo(txWriter, doSend)
	}
	return a.dropOffer()
}

// full: the network accepts no more, and the sender must not wait for it.
func (a *arbiter[W]) full() do {
	a.tx = txWriter
	return doStartWriter
}

// broken: the sender can send no more.
func (a *arbiter[W]) broken() do {
	a.tx = txClosed
	return a.finish()
}

// pass takes the right to receive from a holder that has found no more input, or from a waiter
// that leaves. An offer of the right to send stays, since a waiter may come back soon.
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

// next gives the right to receive to the first waiter in the queue, which must not be empty.
func (a *arbiter[W]) next() do {
	w := a.queue[0]
	a.queue = slices.Delete(a.queue, 0, 1)
	return doGrant | a.hold(w)
}

func (a *arbiter[W]) startReader() do { return doStartReader | a.hold(*new(W)) }

func (a *arbiter[W]) hold(w W) do {
	a.holder = w
	return a.enter(rxBusy)
}

// enter changes the state, and disarms the LLP when it leaves rxArmed. If the poller has
// reported input already, Disarm has no effect.
func (a *arbiter[W]) enter(to rxState) do {
	from := a.rx
	a.rx = to
	if from == rxArmed {
		return doDisarm
	}
	return 0
}

// rest leaves the right to receive without a holder. No goroutine is then expected to take an
// offered right to send, so the writer gets it.
func (a *arbiter[W]) rest(at rxState) do {
	a.rx = at
	d := a.dropOffer()
	if at == rxArmed {
		d |= doArm
	}
	return d
}

// wake wakes a parked holder, so that it checks its predicate and the state.
func (a *arbiter[W]) wake() do {
	if a.rx != rxParked {
		return 0
	}
	a.rx = rxBusy
	return doWake
}

// takeOffer gives an offered right to send to the caller, and dropOffer to the writer.
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
