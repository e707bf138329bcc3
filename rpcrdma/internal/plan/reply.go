package plan

import (
	"fmt"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A Span is a part of the message of a reply.
type Span struct{ Off, Len int }

// A Write is an RDMA Write of one or two spans of the message.
type Write struct {
	Handle uint32
	Offset uint64
	Spans  [2]Span
}

// A Result is the opaque of a reply that goes by a Write chunk, if there is one.
type Result struct {
	Off, Len int
	OK       bool
}

// valid reports whether the opaque, with its pad, is in a message of n octets.
func (r Result) valid(n int) bool {
	return !r.OK || r.Off >= 0 && r.Off%4 == 0 && r.Len >= 0 && r.Len <= n-r.Off && wire.Padded(r.Len) <= n-r.Off
}

// A Reply says where the octets of a reply go. Make reuses its slices.
type Reply struct {
	Header wire.Header // of the reply
	Writes []Write
	Inline [2]Span // what follows the header
}

// Make makes the plan for the reply of n octets to the call with header h. It stores the lengths of the reply in the chunks of h,
// so h must not be used afterwards; the reply returns each chunk of the call (RFC 8166 sections 3.4.6 and 4.3.3). The header
// and what is inline have at most threshold octets. A client that wants the opaque in the message names a Write chunk without
// segments (section 3.4).
func (r *Reply) Make(h *wire.Header, n int, res Result, credits uint32, threshold int) error {
	if !res.valid(n) {
		return fmt.Errorf("%w: a result of %d octets at %d, in a reply of %d", ErrChunk, res.Len, res.Off, n)
	}
	r.Header = wire.Header{
		XID: h.XID, Version: wire.Version, Credits: credits, Proc: wire.Msg, Writes: h.Writes, Reply: h.Reply, HasReply: h.HasReply,
	}
	r.Writes, r.Inline = r.Writes[:0], [2]Span{}
	rest := source{{Off: 0, Len: n}}
	if len(h.Writes) > 0 && len(h.Writes[0]) > 0 && res.OK {
		end := res.Off + wire.Padded(res.Len)
		data := source{{Off: res.Off, Len: res.Len}}
		if err := r.fill(h.Writes[0], data, "Write"); err != nil {
			return err
		}
		rest = source{{Off: 0, Len: res.Off}, {Off: end, Len: n - end}}
		clearLengths(h.Writes[1:])
	} else {
		clearLengths(h.Writes)
	}
	if r.Header.Len()+rest.len() <= threshold {
		r.Inline = rest
		clearChunk(h.Reply)
		return nil
	}
	if !h.HasReply {
		return fmt.Errorf("%w: a reply of %d octets without a Reply chunk", ErrChunk, rest.len())
	}
	r.Header.Proc = wire.NoMsg
	if r.Header.Len() > threshold {
		return fmt.Errorf("%w: a header of %d octets", ErrChunk, r.Header.Len())
	}
	return r.fill(h.Reply, rest, "Reply")
}

// A source is the octets of the message for one destination, in order.
type source [2]Span

func (s source) len() int { return s[0].Len + s[1].Len }

// take takes up to n octets from the beginning.
func (s *source) take(n int) (spans [2]Span) {
	for i := range s {
		k := min(n, s[i].Len)
		spans[i] = Span{Off: s[i].Off, Len: k}
		s[i].Off, s[i].Len, n = s[i].Off+k, s[i].Len-k, n-k
	}
	return spans
}

// fill plans Writes of s to the segments of a chunk, and sets their lengths to what is written.
func (r *Reply) fill(c wire.Chunk, s source, kind string) error {
	for i := range c {
		room := min(uint64(c[i].Length), uint64(s.len()))
		c[i].Length = uint32(room)
		if room > 0 {
			r.Writes = append(r.Writes, Write{Handle: c[i].Handle, Offset: c[i].Offset, Spans: s.take(int(room))})
		}
	}
	if n := s.len(); n > 0 {
		return fmt.Errorf("%w: the %s chunk is %d octets too short", ErrChunk, kind, n)
	}
	return nil
}

func clearLengths(chunks []wire.Chunk) {
	for _, c := range chunks {
		clearChunk(c)
	}
}

// clearChunk marks c as not used: no octets are written to it.
func clearChunk(c wire.Chunk) {
	for i := range c {
		c[i].Length = 0
	}
}
