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
	outboxTells  = 64       // completers of an outbox
	outboxOctets = 64 << 10 // of blobs: with that many, the outbox is posted before more work is done
	messageWRs   = 3        // most work requests of one message, with its blob and STag

	// postWithin bounds how long work requests wait for further ones if a Buffer is slow.
	postWithin = time.Millisecond
)

// An outbox holds the work requests of a turn of the connection, in order, and the completers of the
// operations that ended in that turn. At the end of the turn all work requests are posted together, which
// may save system calls. Then each completer is told once, which may wake a goroutine.
type outbox struct {
	wrs      []iwarp.SendWR
	posted   uint64 // work requests before wrs
	octets   int    // of blobs
	messages []*[wire.MaxSize]byte
	used     int // messages in use
	tells    []completer
}

// message returns memory for a message, which is valid until the outbox has been posted.
func (o *outbox) message() []byte {
	if o.used == len(o.messages) {
		o.messages = append(o.messages, new([wire.MaxSize]byte))
	}
	o.used++
	return o.messages[o.used-1][:0]
}

// full reports whether the next message may not fit, or the contents should not wait any longer.
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

// reset empties the outbox.
func (o *outbox) reset() {
	o.posted += uint64(len(o.wrs))
	clear(o.wrs)
	for _, m := range o.messages[:o.used] {
		clear(m[:]) // there may be keys in it
	}
	clear(o.tells)
	o.wrs, o.octets, o.used, o.tells = o.wrs[:0], 0, 0, o.tells[:0]
}

// compose returns memory for the next message in the outbox, which it flushes first if it is full. mu is held.
func (c *conn) compose() []byte {
	if c.outbox.full() {
		c.flush()
	}
	return c.outbox.message()
}

// post adds work requests to the outbox. mu is held, so that messages are posted in the order of
// their numbers.
func (c *conn) post(wrs ...iwarp.SendWR) { c.outbox.wrs = append(c.outbox.wrs, wrs...) }

// notPosted handles a refused work request. If the QP is ending, the QP's own error is the reason.
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

// flush posts the work requests of the outbox, and then calls tell of its completers. mu is held.
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
