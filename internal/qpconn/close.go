package qpconn

import (
	"errors"
	"io"
	"os"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// Drain begins a graceful end: when all work is done, that of the peer included, Drained is
// closed. The caller has refused further work by [rdmap.Stream.Refuse].
func (c *Conn) Drain() {
	c.mu.Lock()
	if c.ending.stage == Open {
		c.ending.stage = Draining
	}
	c.mu.Unlock()
	c.Post() // the sender looks
}

// Drained returns the channel that is closed when all work is done after Drain.
func (c *Conn) Drained() <-chan struct{} { return c.ending.drained }

// checkDrained closes Drained if all work is done. Only the sender asks, after a batch has left:
// answers leave the queue of the stream before they are out.
func (c *Conn) checkDrained() {
	if sq, irq := c.stream.Idle(); sq != 0 || irq != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ending.drained:
	default:
		close(c.ending.drained)
	}
}

// EndSending ends our half gracefully, when Drained is closed. The caller has told the stream
// by [rdmap.Stream.Shut].
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
	c.Resume() // a message that waits for a receive has come too late
	if !c.closeSend() {
		c.advance(Closing, Closed, nil)
		c.die(nil)
	}
}

// closeSend ends our half. It reports false where the connection can only be ended as a
// whole.
func (c *Conn) closeSend() bool { return !errors.Is(c.llp.CloseSend(), errors.ErrUnsupported) }

// Fail ends the stream for an error that this side has found: a Terminate tells the peer (RFC
// 5040 section 7.1). It reports false if the stream was ending already.
func (c *Conn) Fail(cause error) bool {
	c.mu.Lock()
	used := c.ending.use() // the end is not to come before its cause is recorded
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
	if !tell && !isBadTerminate(cause) {
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

// isBadTerminate reports whether cause is a Terminate of the peer that is in error itself. It
// ends the stream, but no Terminate is answered by one.
func isBadTerminate(cause error) bool {
	var seg *ddp.SegmentError
	return errors.As(cause, &seg) && len(seg.Header) > 1 && rdmap.Opcode(seg.Header[1]&0xf) == rdmap.OpTerminate
}

// PeerTerminated takes the peer's Terminate, of which the [rdmap.Events] of the stream have
// told.
func (c *Conn) PeerTerminated(cause error) {
	c.advance(Terminating, TerminateReceived, cause)
	c.discard()
}

// late takes a message that has come behind our own end: the applications do not agree on the
// end of the stream (draft-hilland-rddp-verbs section 6.2.5). It reports false if that is known.
func (c *Conn) late(cause error) (first bool) {
	c.advance(Failed, BadClose, cause)
	return c.discard()
}

// discard ends our half; from now on the reader throws away what comes. It reports false if
// that has begun before.
func (c *Conn) discard() (first bool) {
	c.mu.Lock()
	if c.arbiter.phase != phaseOpen {
		c.mu.Unlock()
		return false
	}
	c.ending.bound(PeerEndTime, c.overdue)
	told := c.ending.reason == TerminateReceived
	c.act(c.arbiter.discard())
	if !c.closeSend() && told {
		c.die(nil) // nothing of ours is under way that this could destroy
	}
	return true
}

// bound gives the end PeerEndTime to come by itself.
func (c *Conn) bound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.bound(PeerEndTime, c.overdue)
}

func (c *Conn) overdue() { c.lose(os.ErrDeadlineExceeded) }

// receiveFailed takes an error of LLP.Receive.
func (c *Conn) receiveFailed(err error) {
	var f *transport.Fault
	if errors.As(err, &f) && f.Code != transport.MPAConnectionLost {
		c.Fail(err)
		return
	}
	c.lose(err)
}

// peerEnds takes the end of the peer's half. It may overtake the sender, which has handed a
// message to the network and not completed it yet: the sender judges when it is through.
func (c *Conn) peerEnds() {
	c.mu.Lock()
	c.ending.peerEnded = true
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

// afterPeer ends a connection whose peer has ended its half, when there is nothing more to
// send. Work that is still outstanding can no longer be done (draft-hilland-rddp-verbs section
// 6.2.2.2).
func (c *Conn) afterPeer() {
	stage := c.Stage()
	if stage >= Terminating {
		return
	}
	if sq, irq := c.stream.Idle(); stage < Closing && (sq != 0 || irq != 0) {
		c.Fail(transport.Faultf(transport.RDMAPStreamCatastrophic,
			"the peer ended its half with %d work requests and %d RDMA Reads outstanding", sq, irq))
		return
	}
	c.advance(Closing, Closed, nil)
	_ = c.llp.CloseSend()
	c.die(nil)
}

// sendFailed takes an error of LLP.Flush. What the peer said before the connection was lost
// may still be there to be read, a Terminate above all. So unless the end is under way the
// reader goes on to the end of it, which is near: the connection is gone for it, too.
func (c *Conn) sendFailed(err error) {
	c.mu.Lock()
	e := &c.ending
	e.sendErr = err
	readOn := !e.peerEnded && !e.closed && e.stage < Terminating
	if readOn {
		e.bound(readOnTime, func() { c.lose(err) })
	}
	c.mu.Unlock()
	if !readOn {
		c.lose(err)
	}
}

// lose ends the connection because it is gone, unless that is this side's doing.
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

// die ends both halves: gracefully if cause is nil or io.EOF, else with a reset.
func (c *Conn) die(cause error) {
	c.mu.Lock()
	first := !c.ending.closed
	c.ending.closed = true
	c.mu.Unlock()
	if !first {
		return
	}
	if cause == nil || errors.Is(cause, io.EOF) {
		_ = c.llp.Close()
	} else {
		c.llp.Abort(cause)
	}
	c.mu.Lock()
	c.act(c.arbiter.close())
}
