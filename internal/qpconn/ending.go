package qpconn

import "time"

// A Stage is a stage in the life of a connection. A connection never returns to an earlier one:
//
//	Open --Drain--> Draining --EndSending, or the peer ends its half--> Closing --> Ended
//	  any but Ended --Fail, or the peer's Terminate--> Terminating --> Ended
//	  any but Ended --loss, Abort, or a message after our end--> Failed --> Ended
type Stage uint8

// The stages.
const (
	Open        Stage = iota
	Draining          // no more work is posted, and the outstanding work is finished
	Closing           // one side has ended its half gracefully
	Terminating       // a Terminate is to be sent, was sent, or was received
	Failed            // the connection was lost or aborted
	Ended             // nothing is sent or received any more
)

// A Reason is the first event of the end of a connection.
type Reason uint8

// The reasons.
const (
	_                 Reason = iota
	Closed                   // both sides have ended it gracefully
	Terminated               // this side has found an error
	TerminateReceived        // the peer has found an error
	Lost                     // the network has failed
	Aborted                  // Abort was called
	BadClose                 // the peer has sent a message after we ended our half
)

// A peerHalf is the state of the peer's half of the connection. The reader finds its end:
//
//	sends --the end, after whole messages--> ended
//	sends --the end, in the middle of a message--> cut
//	ended --our half is to end, too--> answered
//
// afterPeer decides what each kind of end means, which depends on the [Stage].
type peerHalf uint8

const (
	peerSends peerHalf = iota
	peerEnded
	peerCut
	peerAnswered
)

const (
	// PeerEndTime bounds how long a connection waits for a Terminate to be sent and for the peer
	// to end its half afterwards.
	PeerEndTime = 2 * time.Second
	// readOnTime bounds how long a connection that can no longer send reads the remaining input.
	readOnTime = 500 * time.Millisecond
)

// ending is the state of the end of a connection. The mutex of the Conn guards it.
//
// After a Terminate from either side, we end our half of the connection, and discard all input
// until the peer ends its half: closing at once would answer unread input with a reset, which
// would destroy a Terminate that has not arrived yet. When both halves have ended, or that takes
// too long, the LLP is closed. The receiver and the sender then return from their system calls.
// When both have given up their rights, Flush and Ended are called.
type ending struct {
	stage   Stage
	reason  Reason        // the first reason
	cause   error         // the first error; nil for a graceful end
	drained chan struct{} // closed when all work is done after Drain
	timer   *time.Timer   // bounds the time until the end; nil: not bounded yet

	// Events of the connection, which may occur in any order.
	peer    peerHalf
	sendErr error // the network accepts nothing more
	closed  bool  // the LLP was closed, or is about to be

	users int  // running calls of Fail; the connection ends after them; -1: it has ended
	due   bool // only running calls of Fail delay the end
}

// advance enters a stage, and records the first reason and the first cause. An abort does not
// change a graceful end, before which all work was done.
func (e *ending) advance(to Stage, r Reason, cause error) {
	if r == Aborted && e.reason == Closed {
		return
	}
	if e.cause == nil {
		e.cause = cause
	}
	if e.reason == 0 {
		e.reason = r
	}
	e.stage = max(e.stage, to)
}

// answer reports true once: the caller then ends our half, because the peer has ended its half.
func (e *ending) answer() bool {
	if e.peer != peerEnded {
		return false
	}
	e.peer = peerAnswered
	return true
}

// bound calls late if the connection has not ended within d. It does nothing if the time is
// bounded already.
func (e *ending) bound(d time.Duration, late func()) {
	if e.timer == nil && !e.closed {
		e.timer = time.AfterFunc(d, late)
	}
}

// use prevents the end of the connection until unuse. It reports false if the connection has ended.
func (e *ending) use() bool {
	if e.users < 0 {
		return false
	}
	e.users++
	return true
}

// unuse reverts use. It reports whether the caller must end the connection.
func (e *ending) unuse() (finish bool) {
	e.users--
	return e.due && e.mayFinish()
}

// mayFinish reports whether the connection may end now; both halves must have ended. If it
// reports false, a later unuse reports true.
func (e *ending) mayFinish() bool {
	if e.users > 0 {
		e.due = true
		return false
	}
	e.users = -1
	return true
}

// Stage returns the current stage.
func (c *Conn) Stage() Stage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.stage
}

// Cause returns why the connection ends: the first reason, or 0 if there is none yet, and the
// first error, or nil for a graceful end.
func (c *Conn) Cause() (Reason, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.reason, c.ending.cause
}

// advance is ending.advance for a caller that does not hold the mutex.
func (c *Conn) advance(to Stage, r Reason, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.advance(to, r, cause)
}

// After calls f in its own goroutine after d, unless the connection has ended by then. The end stops the timer, since
// a running timer would keep everything that the queue pair refers to, including memory of the application.
func (c *Conn) After(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.stage < Ended {
		c.timers = append(c.timers, time.AfterFunc(d, f))
	}
}

// finish completes the remaining work. Nothing is sent, received or placed any more.
func (c *Conn) finish() {
	c.stream.End()
	c.owner.Flush()
	c.mu.Lock()
	c.stalled.stop()
	c.progress.stop()
	for _, t := range c.timers {
		t.Stop()
	}
	if c.ending.timer != nil {
		c.ending.timer.Stop()
	}
	c.ending.stage = Ended
	c.mu.Unlock()
	c.owner.Ended()
}
