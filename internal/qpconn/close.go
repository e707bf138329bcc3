package qpconn

import (
	"errors"
	"io"
	"os"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// Drain begins a graceful end: when all work is done, including work that the peer has
// requested, the channel Drained is closed. The caller must have called [rdmap.Stream.Refuse],
// so that no more work is posted.
func (c *Conn) Drain() {
	c.mu.Lock()
	if c.ending.stage == Open {
		c.ending.stage = Draining
	}
	c.mu.Unlock()
	c.Post() // the sender checks whether all work is done
}

// Drained returns the channel that is closed when all work is done after Drain.
func (c *Conn) Drained() <-chan struct{} { return c.ending.drained }

// checkDrained closes Drained if all work is done. Only the sender calls it, after it has sent a
// batch: responses leave the queue of the stream before they are sent.
func (c *Conn) checkDrained() {
	if sq, irq := c.stream.Unfinished(); sq != 0 || irq != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !closed.Is(c.ending.drained) {
		close(c.ending.drained)
	}
}

// EndSending ends our half of the connection gracefully. It is called after Drained was closed,
// and after [rdmap.Stream.Shut].
func (c *Conn) EndSending() {
	c.mu.Lock()
	first := c.ending.stage < Closing
	if first {
		c.ending.stage = Closing
	}
	c.mu.Unlock()
	if !first {
		return
	}
	c.Resume() // a message that waits for a receive fails: it is too late
	if !c.closeSend() {
		c.advance(Closing, Closed, nil)
		c.die(nil)
	}
}

// closeSend ends our half of the connection. It reports false if the LLP can only end both
// halves together.
func (c *Conn) closeSend() bool { return !errors.Is(c.llp.CloseSend(), errors.ErrUnsupported) }

// Fail ends the stream because of an error that this side has found, and sends the peer a Terminate
// (RFC 5040 section 7.1). If the stream was ending already, Fail reports false, unless cause is an
// error in the peer's Terminate: then it sends no Terminate, and all input is discarded.
func (c *Conn) Fail(cause error) bool {
	c.mu.Lock()
	used := c.ending.use() // the connection must not end before the cause is recorded
	c.mu.Unlock()
	if !used {
		return false
	}
	began := c.fail(cause)
	c.mu.Lock()
	finish := c.ending.unuse()
	c.mu.Unlock()
	if finish {
		c.finish()
	}
	return began
}

func (c *Conn) fail(cause error) bool {
	tell := c.stream.Terminate(cause)
	if !tell && !rdmap.InTerminate(cause) {
		return false
	}
	reported := c.owner.Failed(cause)
	c.advance(Terminating, Terminated, reported)
	if tell {
		c.bound()
		c.Post()
	} else {
		c.discard()
	}
	return true
}

// PeerTerminated handles a Terminate of the peer that the stream's [rdmap.Events] reported.
func (c *Conn) PeerTerminated(cause error) {
	c.advance(Terminating, TerminateReceived, cause)
	c.discard()
}

// late handles a message that arrives after we ended our half: the applications do not agree
// on the end of the stream (draft-hilland-rddp-verbs section 6.2.5). It reports whether this is
// the first such event.
func (c *Conn) late(cause error) (first bool) {
	c.advance(Failed, BadClose, cause)
	return c.discard()
}

// discard ends our half of the connection; from now on the reader discards all input. It
// reports whether this is the first call.
func (c *Conn) discard() (first bool) {
	c.mu.Lock()
	if c.arbiter.phase != phaseOpen {
		c.mu.Unlock()
		return false
	}
	c.ending.bound(PeerEndTime, c.overdue)
	peerTerminated := c.ending.reason == TerminateReceived
	c.act(c.arbiter.discard())
	if !c.closeSend() && peerTerminated {
		c.die(nil) // we have sent nothing that a reset could destroy
	}
	return true
}

// bound aborts the connection if it has not ended within PeerEndTime.
func (c *Conn) bound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.bound(PeerEndTime, c.overdue)
}

func (c *Conn) overdue() { c.lose(os.ErrDeadlineExceeded) }

// receiveFailed handles an error of LLP.Receive.
func (c *Conn) receiveFailed(err error) {
	if f, ok := errors.AsType[*transport.Fault](err); ok && f.Code != transport.MPAConnectionLost {
		c.Fail(err)
		return
	}
	c.lose(err)
}

// peerEnds handles the end of the peer's half of the connection: no more work is posted. The sender
// may have handed a message to the network without having completed it yet. So the sender decides what
// the end means: in checkPeer before each batch, and in afterPeer when it has nothing more to send.
func (c *Conn) peerEnds(how peerHalf) {
	c.stream.Refuse()
	c.mu.Lock()
	c.ending.peer = how
	sendErr := c.ending.sendErr
	if sendErr == nil {
		c.ending.bound(PeerEndTime, c.overdue)
	}
	c.mu.Unlock()
	if sendErr != nil {
		c.lose(sendErr)
		return
	}
	c.Post()
}

// checkPeer ends the stream if the peer has ended its half and requests are still to be sent: the peer
// accepts none any more (draft-hilland-rddp-verbs section 6.2.2.2). Responses are still sent.
func (c *Conn) checkPeer() {
	c.mu.Lock()
	ended := c.ending.peer != peerSends && c.ending.stage < Closing
	c.mu.Unlock()
	if ended && c.stream.Unsent() {
		c.failOutstanding()
	}
}

func (c *Conn) failOutstanding() {
	sq, irq := c.stream.Unfinished()
	c.Fail(transport.Faultf(transport.RDMAPStreamCatastrophic,
		"the peer ended its half with %d work requests and %d RDMA Reads outstanding", sq, irq))
}

// afterPeer ends a connection whose peer has ended its half, when there is nothing more to
// send. Outstanding work can no longer be done (draft-hilland-rddp-verbs section 6.2.2.2), and
// an unfinished message can no longer be finished. If a call of Fail is running, the peer may
// already have answered its Terminate: Fail then decides how the connection ends, and posts once
// it has recorded the cause.
func (c *Conn) afterPeer() {
	c.mu.Lock()
	stage, peer, failing := c.ending.stage, c.ending.peer, c.ending.users > 0
	c.mu.Unlock()
	if stage >= Terminating || failing {
		return
	}
	if sq, irq := c.stream.Unfinished(); stage < Closing && (sq != 0 || irq != 0) {
		c.failOutstanding()
		return
	}
	if peer == peerCut {
		c.Fail(transport.Faultf(transport.RDMAPStreamCatastrophic, "the peer ended its half in the middle of a message"))
		return
	}
	c.mu.Lock()
	first := c.ending.answer()
	c.mu.Unlock()
	if !first {
		return
	}
	c.tasks.Start(func() { // over TLS, CloseSend may have to wait, which a poster must not
		_ = c.llp.CloseSend() // it is not graceful if that has to wait for too long
		c.advance(Closing, Closed, nil)
		c.die(nil)
	})
}

// sendFailed handles an error of LLP.Flush. Data that the peer sent before the connection was
// lost, in particular a Terminate, may still be unread. So, unless the connection is ending
// already, the reader continues to the end of the input. That end is near: the connection is
// lost for the reader, too.
func (c *Conn) sendFailed(err error) {
	c.mu.Lock()
	e := &c.ending
	e.sendErr = err
	readOn := e.peer == peerSends && !e.closed && e.stage < Terminating
	if readOn {
		e.bound(readOnTime, func() { c.lose(err) })
	}
	c.mu.Unlock()
	if !readOn {
		c.lose(err)
	}
}

// lose ends the connection because the network has failed, unless this side has closed it.
func (c *Conn) lose(err error) {
	c.mu.Lock()
	if !c.ending.closed {
		c.ending.advance(Failed, Lost, err)
	}
	c.mu.Unlock()
	c.die(err)
}

// Abort ends the connection at once, with a reset.
func (c *Conn) Abort(cause error) {
	c.advance(Failed, Aborted, cause)
	c.die(cause)
}

// die ends both halves of the connection: gracefully if cause is nil or io.EOF, else with a
// reset. It does not wait for the LLP, which the application's net.Conn may block.
func (c *Conn) die(cause error) {
	c.mu.Lock()
	first := !c.ending.closed
	c.ending.closed = true
	c.mu.Unlock()
	if !first {
		return
	}
	c.tasks.Start(func() {
		defer func() { // also if a method of the net.Conn has ended this goroutine
			c.mu.Lock()
			c.act(c.arbiter.close())
		}()
		c.owner.Leaving()
		if cause == nil || errors.Is(cause, io.EOF) {
			_ = c.llp.Close()
		} else {
			c.llp.Abort(cause)
		}
	})
}
