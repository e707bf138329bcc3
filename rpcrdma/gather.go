package rpcrdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/closed"
)

// errNoCall is the error of a reply that answers no call.
var errNoCall = errors.New("rpcrdma: a record that is no reply to a call")

// keptRecord is how many octets of a buffer for a record of several fragments are kept for the next record.
const keptRecord = 64 << 10

// writing is the side of the replies: it gathers a record. A record of a single fragment goes into the memory from which it is
// sent. The length of any other record is not known when it begins.
type writing struct {
	mu sync.Mutex
	record
}

// A record is a record of which a part may have been written.
type record struct {
	mark   [markLen]byte
	marked int // octets of the mark that have been written
	left   int // octets of the fragment that are missing
	last   bool

	o       *outgoing // if it has a single fragment
	at      int
	octets  []byte // if it has several
	several bool
	excess  bool // it is too long: only the XID is kept
}

// Write takes octets of replies. When the connection has ended, it drops an incomplete reply, as Read drops a call, since a server
// may return after the error and not call Close.
func (r *records) Write(p []byte) (n int, err error) {
	w := &r.out
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := r.writeEnd.err(); err != nil {
			return n, err
		}
		if closed.Is(r.c.lost) {
			w.reset(r.c)
			return n, r.c.lostNow()
		}
		k, err := r.put(p[n:])
		n += k
		if err != nil || n == len(p) && !w.due() {
			return n, err
		}
	}
}

// due reports whether the fragment is complete, so that the caller need not write more of it.
func (w *writing) due() bool { return w.marked == markLen && w.left == 0 }

// put takes octets of a mark or of a fragment. At the end of a record it sends the reply.
func (r *records) put(p []byte) (n int, err error) {
	w := &r.out
	if w.marked < markLen {
		n = copy(w.mark[w.marked:], p)
		if w.marked += n; w.marked < markLen {
			return n, nil
		}
		mark := binary.BigEndian.Uint32(w.mark[:])
		w.left, w.last = int(mark&^lastMark), mark&lastMark != 0
		return n, nil
	}
	if err := r.prepare(); err != nil {
		return 0, err
	}
	n = min(w.left, len(p))
	w.keep(p[:n])
	if w.left -= n; w.left > 0 {
		return n, nil
	}
	if !w.last {
		w.marked, w.several = 0, true
		return n, nil
	}
	return n, r.reply()
}

// prepare makes room for a fragment that begins.
func (r *records) prepare() error {
	w := &r.out
	limit := r.c.cfg.maxReply()
	switch {
	case w.o != nil || w.excess:
		return nil
	case w.several || !w.last:
		w.excess = w.left > limit-len(w.octets)
		return nil
	case w.left > limit:
		w.excess = true
		return nil
	}
	o, err := r.begin(w.left)
	w.o, w.at = o, 0
	return err
}

func (r *records) begin(n int) (*outgoing, error) {
	o, err := r.c.begin(r.writeEnd.wait(), n)
	if errors.Is(err, errCanceled) {
		err = os.ErrDeadlineExceeded
	}
	return o, err
}

// keep stores octets of a fragment.
func (w *writing) keep(p []byte) {
	switch {
	case w.o != nil:
		w.at += blockcopy.Copy(w.o.message()[w.at:], p)
	case !w.excess:
		w.octets = append(w.octets, p...)
	case len(w.octets) < 4:
		w.octets = append(w.octets, p[:min(len(p), 4-len(w.octets))]...)
	}
}

// reply sends the record that is complete.
func (r *records) reply() error {
	w, c := &r.out, r.c
	if w.o == nil {
		n := len(w.octets)
		if w.excess {
			n = 0
		}
		o, err := r.begin(n)
		if err != nil {
			return err
		}
		w.o = o
		copy(o.message(), w.octets)
	}
	msg := w.octets
	if !w.several && !w.excess {
		msg = w.o.message()
	}
	xid, ok := xidOf(msg)
	var k *Call
	if ok {
		k = c.claimXID(xid)
	}
	if k == nil {
		w.reset(c)
		if closed.Is(c.lost) {
			return c.lostNow()
		}
		return fmt.Errorf("%w: XID %#x", errNoCall, xid)
	}
	o, excess := w.o, w.excess
	w.o = nil
	w.reset(c)
	if excess {
		c.fails(k, o)
		return nil
	}
	if err := c.answer(k, o); !errors.Is(err, ErrReply) {
		return err
	}
	return nil
}

// reset begins a new record.
func (w *writing) reset(c *Conn) {
	if w.o != nil {
		c.abandon(w.o)
	}
	if cap(w.octets) > keptRecord {
		w.octets = nil
	}
	w.record = record{octets: w.octets[:0]}
}
