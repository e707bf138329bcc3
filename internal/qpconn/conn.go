package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// An Owner is the queue pair that uses a connection. The Conn holds no lock when it calls the
// methods, except ReceiveOverdue.
type Owner interface {
	// Received is called after each read, so that the Owner can publish the completions of that
	// read. The caller has the right to receive.
	Received()
	// Sent is called after each batch is sent. The caller has the right to send.
	Sent()
	// HasReceive reports whether to retry a message that found no receive: a receive is posted now,
	// or the queue has ended and the message is in error. If it reports false, the Owner must call
	// Resume when a receive is posted.
	HasReceive() bool
	// Notice reports that something has to wait.
	Notice(n Notice)
	// ReceiveOverdue reports that a message has waited for a receive for Config.ReceiveWait. If
	// the message finds no receive on its next try, that is an error. The Conn holds its mutex, and
	// no goroutine has the right to receive: otherwise the message could find a receive
	// meanwhile, and the next message that waits would be in error. The method only records this.
	ReceiveOverdue()
	// Failed reports that this side ends the stream because of an error, and returns the
	// error that [Conn.Cause] is to return. It may be called when the connection is already ending.
	Failed(cause error) error
	// Leaving is called once, when the LLP is about to be closed, or aborted.
	Leaving()
	// Flush completes all remaining work. It is called when nothing can be received or sent
	// any more.
	Flush()
	// Ended is the last call.
	Ended()
}

// A Notice says what has to wait.
type Notice uint8

// The notices.
const (
	// NoticeFenced: this side may not send until the first message of the peer has arrived.
	NoticeFenced Notice = iota
	// NoticeNoReceive: a message has waited for a receive for [NoticeAfter].
	NoticeNoReceive
	// NoticeNoProgress: posted work has made no progress for Config.StallWait.
	NoticeNoProgress
)

// A Conn is one connection. All methods may be called from any goroutine.
type Conn struct {
	llp         transport.LLP
	stream      *rdmap.Stream
	owner       Owner
	sweeper     *Sweeper
	tasks       *tasks.Group
	receiveWait time.Duration
	stallWait   time.Duration

	// These are created once, so that their use does not allocate.
	ready, nudge, reader, writer func()

	heard bool // the peer has sent something; owned by the holder of the right to receive

	mu       lockorder.Mutex[lockorder.Conn] // guards the fields below; for its order see the package documentation
	arbiter  arbiter[Waiter]
	ending   ending
	stalled  stalled
	progress progress
	pace     pace
	timers   []*time.Timer // of After: a few
}

// inputReady is called by the poller.
func (c *Conn) inputReady() {
	c.mu.Lock()
	c.act(c.arbiter.ready())
}

// Nudge reports that the wait of a [Waiter] may be over. The caller must make the Waiter's Done
// true before it calls Nudge. If c is nil, no wait depends on it, and Nudge does nothing.
func (c *Conn) Nudge() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.act(c.arbiter.nudge())
}

// act performs the actions d that a step of the arbiter returned, except those that the caller
// itself must perform, and returns the set. c.mu must be held; act releases it.
func (c *Conn) act(d do) do {
	if d&doDisarm != 0 {
		c.llp.Disarm()
	}
	if d&doArm != 0 && !c.llp.Arm(c.ready) {
		d = d&^doSweepLater | c.arbiter.armFailed()
	}
	if d&^(doRead|doPark|doSend|doArm|doDisarm) == 0 {
		c.mu.Unlock()
		return d
	}
	holder := c.arbiter.holder
	rx, listed := c.arbiter.rx, c.pace.listed
	if d&doSweepLater != 0 {
		c.pace.listed = true
	}
	finish := d&doFinish != 0 && c.ending.mayFinish()
	c.mu.Unlock()

	if d&doGrant != 0 {
		holder.Token().Tell()
	}
	if d&doWake != 0 {
		c.llp.Wake()
	}
	if d&doStartReader != 0 {
		c.tasks.Launch(c.reader)
	}
	if d&doStartWriter != 0 {
		c.tasks.Launch(c.writer)
	}
	if d&doSweepLater != 0 && !c.sweeper.add(c, sweepAfter(rx), listed) {
		c.sweepNow()
	}
	if finish {
		c.finish()
	}
	return d
}
