package qpconn

import (
	"errors"

	"github.com/goiwarp/iwarp/transport"
)

// Post sends the queued work, or leaves it to the goroutine that has the right to send. Post does
// not wait for the network.
func (c *Conn) Post() {
	c.mu.Lock()
	if c.act(c.arbiter.post())&doSend != 0 {
		c.send(false)
	}
}

// shareBatches is how many batches a goroutine that must not wait for the network sends before
// it leaves the rest to another goroutine: about 2 MiB, or 1 MiB with CRCs.
const shareBatches = 2

// An outcome is the result of sending a share.
type outcome uint8

const (
	allSent outcome = iota
	shareSent
	networkFull
	sendBroken
)

// send sends shares until there is nothing more to send or another goroutine is to continue.
// The caller has the right to send. If wait is set, which only the writer does, it waits for
// the network.
func (c *Conn) send(wait bool) {
	for {
		out := c.share(wait)
		c.mu.Lock()
		if c.ending.stage != Open && (out == allSent || out == shareSent) {
			c.mu.Unlock()
			c.sentAtTheEnd()
			c.mu.Lock()
		}
		judge := out == allSent && c.ending.peer != peerSends
		if c.act(c.after(out))&doSend != 0 {
			continue
		}
		if judge {
			c.afterPeer()
		}
		return
	}
}

// after performs the arbiter step that follows a share. c.mu must be held.
func (c *Conn) after(out outcome) do {
	switch out {
	case allSent:
		return c.arbiter.sent()
	case shareSent:
		return c.arbiter.share(c.pace.expects())
	case networkFull:
		return c.arbiter.full()
	default:
		return c.arbiter.broken()
	}
}

// share sends a share. With wait, it continues while it has to wait for the network, and leaves
// the rest to other goroutines once the network accepts a batch without waiting.
func (c *Conn) share(wait bool) outcome {
	for batches := shareBatches; batches > 0; {
		c.checkPeer()
		more, fault := c.stream.Fill(c.llp)
		err := c.stream.Flush(c.llp)
		switch full := errors.Is(err, transport.ErrAgain); {
		case full && !wait:
			return networkFull
		case full:
			err = c.llp.Flush(true)
		case wait:
			batches = 0
		default:
			batches--
		}
		switch {
		case errors.Is(err, transport.ErrFenced):
			if c.fenced() {
				return allSent
			}
			continue
		case err != nil:
			c.sendFailed(err)
			return sendBroken
		}
		c.stream.Flushed()
		c.owner.Sent()
		switch {
		case fault != nil:
			c.Fail(fault)
		case !more && !c.stream.Pending():
			return allSent
		}
	}
	return shareSent
}

// sentAtTheEnd handles a share that was sent on a connection that is ending.
func (c *Conn) sentAtTheEnd() {
	if _, sent := c.stream.TerminateSent(); sent {
		c.discard()
	}
	c.checkDrained()
}

// fenced leaves the batch unsent until the peer's first segment arrives. A responder that must
// end before that may not even send a Terminate (RFC 5044 section 7.1.2). fenced reports false if
// that segment has arrived meanwhile, which may be why the stream is ending.
func (c *Conn) fenced() bool {
	ending := c.Stage() == Terminating
	if !c.Fenced() {
		return false
	}
	if ending {
		c.die(nil)
	} else {
		c.owner.Notice(NoticeFenced)
	}
	return true
}
