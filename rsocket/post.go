package rsocket

import (
	"errors"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// worksAtOnce is how many works of the stream are posted together.
const worksAtOnce = 4

// An outbox holds the memory of the work requests that are posted together.
type outbox struct {
	wrs  [2 * worksAtOnce]iwarp.SendWR
	sges [worksAtOnce]iwarp.SGE
	text [worksAtOnce][wire.MessageSize + wire.EntrySize]byte
}

// pump posts all that the stream has to send. mu is held.
func (c *Conn) pump() {
	for c.state == running {
		n, works := 0, 0
		for works < worksAtOnce {
			w, ok := c.stream.Next()
			if !ok {
				break
			}
			n = c.out.add(c, n, works, w)
			works++
		}
		if works == 0 {
			return
		}
		c.post(n)
	}
}

// post posts the first n work requests of the outbox. If the QP refuses them because it ends, its own error is the cause; after any
// other error post ends the connection. mu is held.
func (c *Conn) post(n int) {
	switch err := c.qp.PostSend(c.out.wrs[:n]...); {
	case err == nil:
	case errors.Is(err, net.ErrClosed):
		c.stops()
	default:
		c.endBy(err)
	}
}

// add makes the work requests of a Work, which has a Write, a message, or a Write and the message behind it.
func (o *outbox) add(c *Conn, n, i int, w stream.Work) int {
	text := o.text[i][:0]
	if w.Writes != stream.Nothing {
		wr := &o.wrs[n]
		*wr = iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Remote: iwarp.RemoteBuffer{STag: stag.STag(w.Key), TO: w.Addr}}
		switch w.Writes {
		case stream.OneSlot:
			text = w.Slot.Append(text, c.order)
			wr.Inline = text
		case stream.OneEntry:
			text = w.Entry.Append(text, c.order)
			wr.Inline = text
		default:
			o.sges[i] = c.mem.outMR.Slice(w.Off, w.N)
			wr.Local = o.sges[i : i+1]
		}
		wr.Remote.Len = uint32(w.N + len(text))
		n++
	}
	if w.Writes != stream.Mapped {
		o.wrs[n] = iwarp.SendWR{Op: iwarp.OpSend, Inline: w.Message.Append(text[len(text):], c.order)}
		n++
	}
	c.posted++
	last := &o.wrs[n-1]
	if last.ID, last.Flags = c.posted, 0; w.Quiet {
		last.Flags = iwarp.Unsignaled
	}
	return n
}

// stops records that the QP takes no more work. mu is held.
func (c *Conn) stops() {
	if c.state == running {
		c.state = ending
		c.wake()
	}
}
