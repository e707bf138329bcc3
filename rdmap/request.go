package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
)

// A Kind says what a [Request] asks for.
type Kind uint8

// The kinds of request.
const (
	KindSend       Kind = iota + 1
	KindImmediate       // Immediate Data: the eight octets of Request.Imm
	KindWrite           // RDMA Write
	KindInvalidate      // invalidate an STag of this side
	KindRegister        // enable an STag for the octets that it was prepared for
	KindBind            // bind a memory window to a region

	// From here on there is a response.

	KindRead      // RDMA Read
	KindAtomic    // an atomic operation
	KindExtension // the request of an [Extension]
)

var kindNames = [...]string{
	KindSend:       "Send",
	KindImmediate:  "Immediate Data",
	KindWrite:      "RDMA Write",
	KindInvalidate: "Invalidate",
	KindRegister:   "Register",
	KindBind:       "Bind",
	KindRead:       "RDMA Read",
	KindAtomic:     "Atomic",
	KindExtension:  "Extension",
}

func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// local reports whether nothing is sent.
func (k Kind) local() bool { return k >= KindInvalidate && k <= KindBind }

// Flags change how a [Request] is done.
type Flags uint8

const (
	// Solicited: a Send, or Immediate Data, asks for an event at the peer.
	Solicited Flags = 1 << iota
	// Invalidating: a Send has the peer invalidate Request.Invalidate. A Read
	// invalidates its own sink after the response was delivered, before it completes.
	Invalidating
	// ReadFence: starts only when every earlier request that awaits a response has
	// got it.
	ReadFence
	// LocalFence: starts only when every earlier request has completed.
	LocalFence
	// WithImmediate: right behind a Write goes Immediate Data, Request.Imm.
	WithImmediate
)

// A RemoteAddr names octets of the peer.
type RemoteAddr struct {
	STag stag.STag
	TO   uint64
}

func (a RemoteAddr) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(a.STag))
	return binary.BigEndian.AppendUint64(b, a.TO)
}

func parseRemoteAddr(b []byte) RemoteAddr {
	return RemoteAddr{
		STag: stag.STag(binary.BigEndian.Uint32(b)),
		TO:   binary.BigEndian.Uint64(b[4:]),
	}
}

// A Request is one work request in the send queue. [Stream.Post] lends it to be
// filled in, [Events].Complete gives it back; in between it and the memory that it
// names are the Stream's. Requests are used again: Post hands them out zero but for
// the capacity of Spans and Inline.
//
// What the memory of a request that did not succeed holds, at either end, is not
// known: any part of the octets may have been moved (RFC 5040 section 3.1).
type Request struct {
	// What every request has comes first, so that a Send touches little memory.

	Kind  Kind
	Flags Flags

	// Inlined: the payload of a Send or Write is Inline.
	Inlined bool

	done  bool // has its response, or was done here
	held  bool // the regions that it names are held
	quiet bool // the RTR: makes no completion

	Bits uint32 // the poster's own, as ID and Tag are
	msn  ddp.MSN

	Invalidate stag.STag // of the peer, see Invalidating; KindInvalidate: of this side

	ID  uint64
	Len uint64 // octets of the payload, or changed by an atomic operation; Post computes it

	// Spans is what a Send or Write gathers its payload from, or the one span that a
	// Read places into: a region's, with LocalWrite, unless it is empty. The poster
	// has checked bounds and rights. KindBind: one span, of which Region and Off tell
	// where the window begins; these the poster has not checked.
	Spans []stag.Span

	Tag any

	// Inline is the payload of a Send or Write if Inlined is set, an [AtomicRequest],
	// whose ID Fill will choose, or the octets of an extension's request. The poster
	// copies it in: append(r.Inline[:0], ...).
	Inline []byte

	reply *replyBuffer

	// A Send has none of the following, which its poster leaves alone.

	Remote RemoteAddr // target of a Write, source of a Read
	Imm    [8]byte    // KindImmediate, WithImmediate

	// Enable is what was prepared, of KindRegister and KindBind. Of KindInvalidate it is the
	// region that Invalidate names, or nil if the poster does not know it: then that may be
	// closed before the turn of the request comes.
	Enable *stag.Region

	Ext   *Extension // KindExtension
	Reply []byte     // KindExtension: the octets of the response, for Accept and Complete
	Old   uint64     // KindAtomic: the value before, for Complete

	sink RemoteAddr // of a Read: where its response goes
	got  uint64     // octets of the response that have come, in the order of the peer
}

// A replyBuffer is where a response on QN 3 is placed. It stays with its Request for
// good.
type replyBuffer struct {
	mem  []byte
	span [1]stag.Span
}

// room returns the buffer for a response of at most n octets.
func (b *replyBuffer) room(n int) []stag.Span {
	if cap(b.mem) < n {
		b.mem = make([]byte, n)
	}
	b.span[0] = stag.Span{Mem: b.mem[:n], Len: n}
	return b.span[:]
}

// reset makes r ready for its next poster.
func (r *Request) reset() {
	if len(r.Spans) == 1 {
		r.Spans[0] = stag.Span{}
	} else {
		clear(r.Spans)
	}
	spans, inline, reply := r.Spans[:0], r.Inline[:0], r.reply
	*r = Request{}
	r.Spans, r.Inline, r.reply = spans, inline, reply
}

// resetSend is reset for a Send, of which only the first part was in use.
func (r *Request) resetSend() {
	if len(r.Spans) == 1 {
		r.Spans[0] = stag.Span{}
	} else {
		clear(r.Spans)
	}
	r.Kind, r.Flags, r.Inlined, r.done, r.quiet = 0, 0, false, false, false
	r.Bits, r.msn, r.Invalidate = 0, 0, 0
	r.ID, r.Len = 0, 0
	r.Spans, r.Inline = r.Spans[:0], r.Inline[:0]
	if r.Tag != nil {
		r.Tag = nil
	}
}

// awaitsResponse reports whether r takes a slot of the peer's inbound queue.
func (r *Request) awaitsResponse() bool { return r.Kind >= KindRead }

// awaitsReply reports whether r's response comes on QN 3.
func (r *Request) awaitsReply() bool { return r.Kind > KindRead }

// maxReply is how long the response on QN 3 may be.
func (r *Request) maxReply() int {
	if r.Kind == KindAtomic {
		return AtomicResponseLen
	}
	return r.Ext.MaxResponse
}

// takesReceive reports whether r sends a message on QN 0.
func (r *Request) takesReceive() bool {
	return r.Kind == KindSend || r.Kind == KindImmediate || r.Flags&WithImmediate != 0
}

// opcode returns the opcode of the message that r sends, of the first if there are
// two.
func (r *Request) opcode() Opcode {
	switch r.Kind {
	case KindSend:
		return sendOpcodes[r.Flags&(Solicited|Invalidating)]
	case KindImmediate:
		return r.immediateOpcode()
	case KindRead:
		return OpReadRequest
	case KindAtomic:
		return OpAtomicRequest
	case KindExtension:
		return r.Ext.Request
	default:
		return OpWrite
	}
}

func (r *Request) immediateOpcode() Opcode {
	if r.Flags&Solicited != 0 {
		return OpImmediateSolicited
	}
	return OpImmediate
}

var sendOpcodes = [...]Opcode{
	0:                        OpSend,
	Solicited:                OpSendSolicited,
	Invalidating:             OpSendInvalidate,
	Solicited | Invalidating: OpSendSolicitedInvalidate,
}

// hold keeps the regions that r names from being closed until it completes.
func (r *Request) hold(h *holdCache) {
	for i := range r.Spans {
		if x := r.Spans[i].Region; x != nil {
			h.hold(x)
		}
	}
	if x := r.queue(); x != nil {
		h.hold(x)
	}
	r.held = true
}

func (r *Request) release(h *holdCache) {
	if !r.held {
		return
	}
	for i := range r.Spans {
		if x := r.Spans[i].Region; x != nil {
			h.release(x)
		}
	}
	if x := r.queue(); x != nil {
		h.release(x)
	}
	r.held = false
}

// queue is what r holds of the STag that it is to enable or to invalidate, if it is that
// kind of request. Of others it touches no more than they use.
func (r *Request) queue() *stag.Region {
	if !r.Kind.local() || r.Enable == nil {
		return nil
	}
	return r.Enable.Queue()
}

// usable reports whether all regions that r's payload comes from may still be used.
func (r *Request) usable() bool {
	for i := range r.Spans {
		if x := r.Spans[i].Region; x != nil && !x.Usable() {
			return false
		}
	}
	return true
}
