package rpcrdma

import (
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/plan"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A grant is memory for a reply.
type grant struct {
	m   *memory
	err error
}

// An outgoing is a message to the client, with the RDMA Writes before it. Its memory must not change until the Send
// has completed.
type outgoing struct {
	c      *Conn
	index  int
	buf    []byte  // the first half is for the header, the second for the message
	mem    *memory // for a longer message
	n      int     // length of the message
	grants chan grant
	wait   waiter

	plan     plan.Reply
	header   int
	wrs      []iwarp.SendWR
	sges     []iwarp.SGE
	queued   bool      // under mu: it is to be sent
	deadline time.Time // under mu
}

func (o *outgoing) granted(m *memory, err error) { o.grants <- grant{m, err} }

// message returns the memory for the message.
func (o *outgoing) message() []byte {
	if o.mem != nil {
		return o.mem.b[:o.n]
	}
	return o.buf[len(o.buf)/2:][:o.n]
}

// span returns a part of the message as an SGE.
func (o *outgoing) span(s plan.Span) iwarp.SGE {
	if o.mem != nil {
		return o.mem.mr.Slice(s.Off, s.Len)
	}
	return o.part(len(o.buf)/2+s.Off, s.Len)
}

// part returns a part of buf as an SGE.
func (o *outgoing) part(off, n int) iwarp.SGE {
	return o.c.outMR.Slice(o.index*len(o.buf)+off, n)
}

// begin waits for an outgoing with memory for a message of n octets, which is at most the maxReply of the configuration.
func (c *Conn) begin(cancel <-chan struct{}, n int) (*outgoing, error) {
	var o *outgoing
	select {
	case o = <-c.idle:
	default:
		select {
		case o = <-c.idle:
		case <-c.lost:
			return nil, c.lostNow()
		case <-cancel:
			return nil, errCanceled
		}
	}
	o.n = n
	if n <= len(o.buf)/2 {
		return o, nil
	}
	c.replyMemory.ask(&o.wait, n, o)
	select {
	case g := <-o.grants:
		return o.got(g)
	default:
	}
	var err error
	select {
	case g := <-o.grants:
		return o.got(g)
	case <-c.lost:
		err = c.lostNow()
	case <-cancel:
		err = errCanceled
	}
	if !c.replies.cancel(&o.wait) {
		g := <-o.grants
		o.mem = g.m
	}
	c.abandon(o)
	return nil, err
}

// got takes the memory. If registration has failed, the call cannot be answered, and the connection ends, as in Call.granted.
func (o *outgoing) got(g grant) (*outgoing, error) {
	if g.err != nil {
		c := o.c
		c.mu.Lock()
		defer c.unlock()
		c.fail(g.err)
		c.finished(o)
		return nil, c.lostBy()
	}
	o.mem = g.m
	return o, nil
}

func (c *Conn) lostNow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostBy()
}

// abandon frees an outgoing that was not used.
func (c *Conn) abandon(o *outgoing) {
	c.mu.Lock()
	c.finished(o)
	c.unlock()
}

// finished makes an outgoing free, or uses it for a failure that is owed. mu is held.
func (c *Conn) finished(o *outgoing) {
	if o.mem != nil {
		c.spent = append(c.spent, o.mem)
		o.mem = nil
	}
	o.queued, o.deadline = false, time.Time{}
	if len(c.owed) > 0 && c.stage < closing {
		c.answerFailure(pop(&c.owed), o)
		return
	}
	c.idle <- o
}

// posted is called when the outgoing is about to be posted. mu is held.
func (o *outgoing) posted() {
	o.deadline = time.Now().Add(patience)
	o.c.watch()
}

// sent handles the completion of the Send; the Writes before it have completed. mu is held.
func (c *Conn) sent(o *outgoing) {
	c.free += len(o.wrs)
	c.finished(o)
	c.settle()
}

// compose makes the work requests of a reply, from its plan.
func (o *outgoing) compose(k *Call) {
	o.wrs, o.sges = o.wrs[:0], o.sges[:0]
	o.header = len(o.plan.Header.Append(o.buf[:0]))
	need := 2*len(o.plan.Writes) + 3
	if cap(o.sges) < need {
		o.sges = make([]iwarp.SGE, 0, need)
	}
	for i := range o.plan.Writes {
		w := &o.plan.Writes[i]
		o.wrs = append(o.wrs, iwarp.SendWR{
			Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: o.locals(0, w.Spans),
			Remote: remote(w.Handle, w.Offset, w.Spans[0].Len+w.Spans[1].Len),
		})
	}
	send := o.send(o.locals(o.header, o.plan.Inline))
	if k.one && o.c.invalidates {
		send.Op, send.Invalidate = iwarp.OpSendInvalidate, stag.STag(k.handle)
	}
	o.wrs = append(o.wrs, send)
}

func (o *outgoing) send(local []iwarp.SGE) iwarp.SendWR {
	return iwarp.SendWR{ID: kindSend<<32 | uint64(o.index), Op: iwarp.OpSend, Local: local}
}

// locals returns the SGEs of a header, if it has octets, and of two spans of the message.
func (o *outgoing) locals(header int, spans [2]plan.Span) []iwarp.SGE {
	first := len(o.sges)
	if header > 0 {
		o.sges = append(o.sges, o.part(0, header))
	}
	for _, s := range spans {
		if s.Len > 0 {
			o.sges = append(o.sges, o.span(s))
		}
	}
	return o.sges[first:len(o.sges):len(o.sges)]
}

// composeFailure makes the work request of an error of the transport: a version failure if the version was wrong.
func (o *outgoing) composeFailure(h *wire.Header) {
	credits := uint32(o.c.cfg.Credits)
	b := o.buf[:0]
	if h.Version != wire.Version {
		b = wire.AppendVersionFailure(b, h.XID, h.Version, credits)
	} else {
		b = wire.AppendChunkFailure(b, h.XID, credits)
	}
	o.sges = append(o.sges[:0], o.part(0, len(b)))
	o.wrs = append(o.wrs[:0], o.send(o.sges))
}

func remote(handle uint32, offset uint64, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: stag.STag(handle), TO: offset, Len: uint32(n)}
}
