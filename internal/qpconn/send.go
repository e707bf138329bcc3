package qpconn

import (
	"errors"

	"github.com/goiwarp/iwarp/transport"
)

// Post sends what is queued, or sees to it that it is sent. It does not wait for the network.
func (c *Conn) Post() {
	c.mu.Lock()
	if c.act(c.arbiter.post())&doSend != 0 {
		c.send(false)
	}
}

// shareBatches is how many batches a goroutine sends that must not wait for the network,
// before it leaves the rest to others: about 2 MiB, 1 MiB with CRCs.
const shareBatches = 2

// An outcome is how far a share has got.
type outcome uint8

const (
	allSent outcome = iota
	shareSent
	networkFull
	sendBroken
)

// send sends share after share, until there is nothing more or another goroutine is to go on.
// The caller has the right to send. Only the writer waits for the network.
func (c *Conn) send(wait bool) {
	for {
		out := c.share(wait)
		c.mu.Lock()
		if c.ending.stage != Open && (out == allSent || out == shareSent) {
			c.mu.Unlock()
			c.sentAtTheEnd()
			c.mu.Lock()
		}
		judge := out == allSent && c.ending.peerEnded
		if c.act(c.after(out))&doSend != 0 {
			continue
		}
		if judge {
			c.afterPeer()
		}
		return
	}
}

// after is the step that follows a share. c.mu is held.
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

// share sends a share. The writer, which may wait, goes on as long as it has to: the rest is
// for others when the network takes a batch at once.
func (c *Conn) share(wait bool) outcome {
	for batches := shareBatches; batches > 0; {
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
			c.fenced()
			return allSent
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

// sentAtTheEnd looks at what a share that has left means for a connection that ends.
func (c *Conn) sentAtTheEnd() {
	if _, sent := c.stream.TerminateSent(); sent {
		c.discard()
	}
	c.checkDrained()
}

// fenced keeps the batch until the first segment of the peer has come. A responder that must
// end before may not even send a Terminate (RFC 5044 section 7.1.2).
func (c *Conn) fenced() {
	if c.Stage() == Terminating {
		c.die(nil)
		return
	}
	c.owner.Notice(NoticeFenced)
}
