package rma

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

const (
	outboxWRs    = 256      // work requests of an outbox
	outboxTells  = 64       // completers that it tells
	outboxOctets = 64 << 10 // of blobs: with so many it is posted before more work is done
	messageWRs   = 3        // work requests of one message, with what belongs to it, at most

	// postWithin bounds for how long work requests wait for more of them, if a Buffer takes its time.
	postWithin = time.Millisecond
)

// An outbox has the work requests of a turn of the connection, in order, and the completers of the
// operations that have ended in it. At the end of the turn all work requests are posted together, which may
// save system calls, and then each completer is told once, which may wake a goroutine.
type outbox struct {
	wrs      []iwarp.SendWR
	posted   uint64 // before them
	octets   int    // of blobs
	messages []*[wire.MaxSize]byte
	used     int // of them
	tells    []completer
}

// message returns memory for a message, until the outbox was posted.
func (o *outbox) message() []byte {
	if o.used == len(o.messages) {
		o.messages = append(o.messages, new([wire.MaxSize]byte))
	}
	o.used++
	return o.messages[o.used-1][:0]
}

// full reports whether a message may not fit, or what is there should not wait any longer.
func (o *outbox) full() bool {
	return len(o.wrs)+messageWRs > outboxWRs || o.octets >= outboxOctets || len(o.tells) >= outboxTells
}

func (o *outbox) empty() bool { return len(o.wrs) == 0 && len(o.tells) == 0 }

// tell adds a completer that is to be told.
func (o *outbox) tell(c completer) {
	if n := len(o.tells); n == 0 || o.tells[n-1] != c {
		o.tells = append(o.tells, c)
	}
}

// reset empties it.
func (o *outbox) reset() {
	o.posted += uint64(len(o.wrs))
	clear(o.wrs)
	for _, m := range o.messages[:o.used] {
		clear(m[:]) // there may be keys in it
	}
	clear(o.tells)
	o.wrs, o.octets, o.used, o.tells = o.wrs[:0], 0, 0, o.tells[:0]
}

// compose returns memory for the next message, behind what is in the outbox. mu is held.
func (c *conn) compose() []byte {
	if c.outbox.full() {
		c.flush()
	}
	return c.outbox.message()
}

// post adds work requests to the outbox. mu is held, so that messages are posted in the order of
// their numbers.
func (c *conn) post(wrs ...iwarp.SendWR) { c.outbox.wrs = append(c.outbox.wrs, wrs...) }

// notPosted is for a work request that was refused. If the QP is ending, its own error tells why.
// mu is held.
func (c *conn) notPosted(err error) {
	switch {
	case c.stage >= failing:
	case errors.Is(err, net.ErrClosed):
		c.reach(broken)
	default:
		c.end(fmt.Errorf("rma: %w", err))
	}
}

// flush posts the work requests of the outbox, and tells its completers. mu is held.
func (c *conn) flush() {
	if len(c.outbox.wrs) > 0 {
		if err := c.qp.PostSend(c.outbox.wrs...); err != nil {
			c.notPosted(err)
		}
	}
	for _, t := range c.outbox.tells {
		t.tell()
	}
	c.outbox.reset()
}
