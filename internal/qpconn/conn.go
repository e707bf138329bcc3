package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// An Owner is what a connection serves: a queue pair. No lock of the Conn is held in its
// methods.
type Owner interface {
	// Received follows each read: what it has completed is to be told. The caller has the
	// right to receive.
	Received()
	// Sent follows each batch that has left. The caller has the right to send.
	Sent()
	// HasReceive reports whether there is a receive for a message that has found none. If
	// not, the Owner calls Resume when there is one.
	HasReceive() bool
	// Notice tells of something that waits.
	Notice(n Notice)
	// Failed tells that this side ends the stream for cause, and returns what Cause is to be.
	// It may be called for a connection that is ending already.
	Failed(cause error) error
	// Flush completes all work that is left. Nothing is received or sent any more.
	Flush()
	// Ended is the last call.
	Ended()
}

// A Notice is something that waits.
type Notice uint8

// The notices.
const (
	// NoticeFenced: this side may not send before the first message of the peer has come.
	NoticeFenced Notice = iota
	// NoticeNoReceive: a message has waited for a receive for [NoticeAfter].
	NoticeNoReceive
	// NoticeReceiveOverdue: it has waited for Config.ReceiveWait. The next time that the message
	// finds no receive is an error.
	NoticeReceiveOverdue
)

// A Conn is one connection. All methods may be called from any goroutine.
type Conn struct {
	llp         transport.LLP
	stream      *rdmap.Stream
	owner       Owner
	sweeper     *Sweeper
	tasks       *tasks.Group
	receiveWait time.Duration

	// Made once, so that using them does not allocate.
	ready, nudge, reader, writer func()

	heard bool // something has come from the peer; the holder's of the right to receive

	mu      lockorder.Mutex[lockorder.Conn] // guards what follows; see the package documentation for the order
	arbiter arbiter[Waiter]
	ending  ending
	stalled stalled
	pace    pace
}

// inputReady is called by the poller.
func (c *Conn) inputReady() {
	c.mu.Lock()
	c.act(c.arbiter.ready())
}

// Nudge tells that the wait of a [Waiter] may be over. It is set first, and told second.
func (c *Conn) Nudge() {
	c.mu.Lock()
	c.act(c.arbiter.nudge())
}

// act does what a step of the arbiter asks for. c.mu is held, and is released. It returns
// what the caller does next.
func (c *Conn) act(d do) do {
	if d&doDisarm != 0 {
		c.llp.Disarm()
	}
	if d&doArm != 0 && !c.llp.Arm(c.ready) {
		d |= c.arbiter.armFailed()
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
		tell(holder)
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

// tell sends w a token, unless there is one.
func tell(w Waiter) {
	select {
	case w.Token() <- struct{}{}:
	default:
	}
}
