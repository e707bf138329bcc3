package qpconn

import "time"

// A Stage is how far a connection has got. It never goes back:
//
//	Open --Drain--> Draining --EndSending, or the peer ends its half--> Closing --> Ended
//	  any but Ended --Fail, or the peer's Terminate--> Terminating --> Ended
//	  any but Ended --lost, Abort, a message behind our own end--> Failed --> Ended
type Stage uint8

// The stages.
const (
	Open        Stage = iota
	Draining          // no more work is posted, and what there is is finished
	Closing           // one side has ended its half gracefully
	Terminating       // a Terminate was found due, or has come
	Failed            // it is lost, or was aborted
	Ended             // nothing is sent or received any more
)

// A Reason is what the end of a connection has begun with.
type Reason uint8

// The reasons.
const (
	_                 Reason = iota
	Closed                   // both sides have ended it gracefully
	Terminated               // this side has found an error
	TerminateReceived        // the peer has
	Lost                     // the network has failed
	Aborted                  // Abort was called
	BadClose                 // the peer has sent a message behind our own end
)

const (
	// PeerEndTime bounds how long a connection waits for a Terminate to leave, and for the peer
	// to end its half after it.
	PeerEndTime = 2 * time.Second
	// readOnTime bounds how long a connection that takes no more reads what had come.
	readOnTime = 500 * time.Millisecond
)

// ending is how a connection ends. The mutex of the Conn guards it.
//
// A Terminate, of either side, is followed by the end of our half, and then what still comes
// is thrown away until the peer ends its half: to close at once would answer unread input
// with a reset, which destroys a Terminate that is still under way. When both halves have
// ended, or that has taken too long, the LLP is closed. Receiving and sending each find that
// out by themselves; Flush and Ended follow the second one.
type ending struct {
	stage   Stage
	reason  Reason        // the first one
	cause   error         // likewise; nil for a graceful end
	drained chan struct{} // closed when all work is done after Drain
	timer   *time.Timer   // bounds what remains; nil: it need not be bounded yet

	// What has happened to the connection, in any order.
	peerEnded bool  // the peer has ended its half
	sendErr   error // the network takes nothing more
	closed    bool  // the LLP was closed, or is about to be

	users int  // calls of Fail, which the connection must outlast; -1: it has ended
	due   bool // it has ended but for those
}

// advance goes on to a stage, and keeps the first reason and cause.
func (e *ending) advance(to Stage, r Reason, cause error) {
	if e.stage == Ended {
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

// bound gives the end d to come by itself, unless it is bounded already. late is called if it
// does not.
func (e *ending) bound(d time.Duration, late func()) {
	if e.timer == nil && !e.closed {
		e.timer = time.AfterFunc(d, late)
	}
}

// use keeps the connection from ending until unuse. false: it has ended.
func (e *ending) use() bool {
	if e.users < 0 {
		return false
	}
	e.users++
	return true
}

// unuse reports whether the end is due.
func (e *ending) unuse() (finish bool) {
	e.users--
	return e.due && e.mayFinish()
}

// mayFinish reports whether the connection, both halves of which have ended, may end now;
// else unuse will tell.
func (e *ending) mayFinish() bool {
	if e.users > 0 {
		e.due = true
		return false
	}
	e.users = -1
	return true
}

// Stage returns the stage.
func (c *Conn) Stage() Stage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.stage
}

// Cause returns what the end has begun with: the first reason, 0 while there is none, and the
// first error, nil for a graceful end.
func (c *Conn) Cause() (Reason, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending.reason, c.ending.cause
}

// advance is that of the ending, for a caller without the mutex.
func (c *Conn) advance(to Stage, r Reason, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.advance(to, r, cause)
}

// finish completes what is left. Nothing is sent, received or placed any more.
func (c *Conn) finish() {
	c.stream.End()
	c.owner.Flush()
	c.mu.Lock()
	c.stalled.stop()
	if c.ending.timer != nil {
		c.ending.timer.Stop()
	}
	c.ending.stage = Ended
	c.mu.Unlock()
	c.owner.Ended()
}
