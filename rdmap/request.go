package rdmap

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/stag"
)

// A Kind is the kind of operation of a [Request].
type Kind uint8

// The kinds of request.
const (
	KindSend       Kind = iota + 1
	KindImmediate       // Immediate Data: the eight octets of Request.Imm
	KindWrite           // RDMA Write
	KindInvalidate      // invalidate an STag of this side
	KindRegister        // enable an STag for prepared memory
	KindBind            // bind a memory window to a region

	// The following kinds have a response.

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

func (k Kind) String() string { return names.Of(k, kindNames[:], "kind %d") }

// local reports whether a request of this kind sends nothing.
func (k Kind) local() bool { return k >= KindInvalidate && k <= KindBind }

// Flags modify a [Request].
type Flags uint8

const (
	// Solicited: a Send, or Immediate Data, requests an event at the peer.
	Solicited Flags = 1 << iota
	// Invalidating: a Send makes the peer invalidate Request.Invalidate. A Read
	// invalidates its own sink after its response was delivered, before it completes.
	Invalidating
	// ReadFence: the request starts only after all earlier requests have received their
	// responses.
	ReadFence
	// LocalFence: the request starts only after all earlier requests have completed.
	LocalFence
	// WithImmediate: Immediate Data, Request.Imm, is sent right after a Write.
	WithImmediate
)

// A RemoteAddr is an address in memory of the peer.
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

// A Request is one work request in the send queue. The poster fills it in during
// [Stream.Post]. From then on the Request, and the memory that it names, belong to the
// Stream, until [Events].Complete. Requests are reused: Post passes them zeroed, except for
// the capacity of Spans and Inline.
//
// After a request that did not succeed the contents of its memory, at either end, are
// undefined: any part of the octets may have been moved (RFC 5040 section 3.1).
type Request struct {
	// Fields that all kinds use come first, so that a Send touches little memory.

	Kind  Kind
	Flags Flags

	// Inlined: the payload of a Send or Write is Inline.
	Inlined bool

	done  bool // its response was received, or it was performed locally
	held  bool // the regions that it names are held
	quiet bool // it is the RTR, which causes no completion

	Class     uint8     // for the use of Config.Admit
	InRun     bool      // for Admit: the previous call was for the Read before this one
	Answered  bool      // for Complete, of a Read after Go: BatchDone completes it
	admission Admission // of a Read: the last answer of Config.Admit

	Bits uint32 // for the use of the poster, like ID and Tag
	msn  ddp.MSN

	Invalidate stag.STag // an STag of the peer, see Invalidating; KindInvalidate: of this side

	ID  uint64
	Len uint64 // length of the payload, or of the operand of an atomic operation; Post computes it

	// Spans holds the source of a Send or Write, or the sink of a Read: one span in a
	// region with LocalWrite, unless it is empty. The poster has checked bounds and
	// rights. KindBind: one span, whose Region and Off are the beginning of the window;
	// the poster has not checked these.
	Spans []stag.Span

	Tag any

	Posted int64 // for the use of the poster: when it was posted

	// Inline is the payload of a Send or Write if Inlined is set, an [AtomicRequest],
	// whose ID Fill sets, or the request of an extension. The poster copies the octets:
	// r.Inline = append(r.Inline[:0], ...).
	Inline []byte

	reply *replyBuffer

	// A Send uses none of the following fields; its poster must not set them.

	Remote RemoteAddr // target of a Write, source of a Read
	Imm    [8]byte    // KindImmediate, WithImmediate

	// Enable is the prepared region of KindRegister and KindBind. Of KindInvalidate it is the
	// region that Invalidate names, or nil if the poster does not know it: then the region
	// may be closed before the request is performed.
	Enable *stag.Region

	Ext   *Extension // KindExtension
	Reply []byte     // KindExtension: the octets of the response, for Accept and Complete
	Old   uint64     // KindAtomic: the previous value, for Complete
	Grant uint64     // KindRead: for the use of Config.Admit, and for Complete

	sink RemoteAddr // of a Read
	got  uint64     // octets of the response that have arrived, in the sender's order
}

// A replyBuffer is the buffer for a response on QN 3. It is part of its Request permanently.
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

// reset prepares r for its next use.
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

// resetSend is reset for a Send, which has used only the first fields.
func (r *Request) resetSend() {
	if len(r.Spans) == 1 {
		r.Spans[0] = stag.Span{}
	} else {
		clear(r.Spans)
	}
	r.Kind, r.Flags, r.Inlined, r.done, r.quiet, r.Class = 0, 0, false, false, false, 0
	r.Bits, r.msn, r.Invalidate = 0, 0, 0
	r.ID, r.Len, r.Posted = 0, 0, 0
	r.Spans, r.Inline = r.Spans[:0], r.Inline[:0]
	if r.Tag != nil {
		r.Tag = nil
	}
}

// awaitsResponse reports whether r has a response, and so occupies a slot of the ORD.
func (r *Request) awaitsResponse() bool { return r.Kind >= KindRead }

// awaitsReply reports whether r has a response on QN 3.
func (r *Request) awaitsReply() bool { return r.Kind > KindRead }

// maxReply returns the maximum length of the response on QN 3.
func (r *Request) maxReply() int {
	if r.Kind == KindAtomic {
		return AtomicResponseLen
	}
	return r.Ext.MaxResponse
}

// takesReceive reports whether r sends a message on QN 0, which takes a receive of the peer.
func (r *Request) takesReceive() bool {
	return r.Kind == KindSend || r.Kind == KindImmediate || r.Flags&WithImmediate != 0
}

// opcode returns the opcode of the message that r sends, or of the first if it sends two.
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

// hold prevents the regions that r names from being closed until r completes.
func (r *Request) hold(h *holdCache) {
	for i := range r.Spans {
		if x := r.Spans[i].Region; x != nil {
			h.hold(x)
		}
	}
	if x := r.pending(); x != nil {
		h.hold(x)
	}
	r.held = true
}

// Hold is for a Request that is posted later, as a copy: it keeps the regions from being closed, as [Stream.Post] does.
// Post takes the holds over. If the Request is not posted, Release releases them.
func (r *Request) Hold() {
	var h holdCache
	r.hold(&h)
	h.flush()
}

// Release ends Hold of a Request that was not posted.
func (r *Request) Release() {
	var h holdCache
	r.release(&h)
	h.flush()
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
	if x := r.pending(); x != nil {
		h.release(x)
	}
	r.held = false
}

// pending returns the Region that r holds for the STag that it will enable or invalidate, or nil. It
// does not access fields that a Send does not use.
func (r *Request) pending() *stag.Region {
	if !r.Kind.local() || r.Enable == nil {
		return nil
	}
	return r.Enable.Pending()
}

// usable reports whether all regions of Spans are still valid.
func (r *Request) usable() bool {
	for i := range r.Spans {
		if x := r.Spans[i].Region; x != nil && !x.Usable() {
			return false
		}
	}
	return true
}
