package plan

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// ErrChunk is the error of chunks that do not form a message, or leave no room for it.
var ErrChunk = errors.New("rpcrdma: chunks that do not fit")

// A Read is an RDMA Read into the message.
type Read struct {
	Handle uint32
	Offset uint64
	At     int // in the message
	Len    int
}

// A Copy is a part of the message that came inline.
type Copy struct{ From, At, Len int }

// An opaque came in a chunk, perhaps with its pad. The word before it in the message is its length.
type opaque struct{ at, len int }

// A Call says how the message of a call is assembled. Make reuses its slices.
type Call struct {
	Len    int // of the message
	Reads  []Read
	Copies []Copy

	opaques []opaque
}

// Make makes the plan for a message of at most limit octets with header h, which the octets of inline follow. If it returns no
// error, the reads, the copies and the pads that Finish adds cover the whole message.
//
// A position is an offset in the whole message: the octets before it come from the body and from
// the chunks before, with their pads. The body of NoMsg is the chunk of position zero.
func (c *Call) Make(h *wire.Header, inline []byte, limit int) error {
	c.Len, c.Reads, c.Copies, c.opaques = 0, c.Reads[:0], c.Copies[:0], c.opaques[:0]
	reads := h.Reads
	b := body{inline: inline, n: len(inline)}
	if h.Proc == wire.NoMsg {
		b = body{segments: group(reads)}
		reads = reads[len(b.segments):]
		if err := b.measure(len(inline), limit); err != nil {
			return err
		}
	}
	for len(reads) > 0 {
		chunk := group(reads)
		reads = reads[len(chunk):]
		if err := c.chunk(&b, chunk, limit); err != nil {
			return err
		}
	}
	c.piece(&b, b.n-b.at)
	if c.Len > limit {
		return fmt.Errorf("%w: a call of %d octets", ErrChunk, c.Len)
	}
	return nil
}

// group returns the first chunk: the segments at the beginning that have the same position.
func group(reads []wire.ReadSegment) []wire.ReadSegment {
	n := 0
	for n < len(reads) && reads[n].Position == reads[0].Position {
		n++
	}
	return reads[:n]
}

// sum returns the length of a chunk, which must be at most limit.
func sum(chunk []wire.ReadSegment, limit int) (int, error) {
	total := uint64(0)
	for _, s := range chunk {
		total += uint64(s.Length)
		if s.Length == 0 || total > uint64(limit) {
			return 0, fmt.Errorf("%w: a segment of %d octets, or a chunk of %d", ErrChunk, s.Length, total)
		}
	}
	return int(total), nil
}

// A body is the part of a message that is not in chunks of its own.
type body struct {
	inline   []byte
	segments []wire.ReadSegment // instead of inline
	used     int                // of the first segment
	n        int                // its length
	at       int                // how much of it has been placed
}

// measure checks the body of NoMsg.
func (b *body) measure(inline, limit int) (err error) {
	if inline > 0 || len(b.segments) == 0 || b.segments[0].Position != 0 {
		return fmt.Errorf("%w: no message in a chunk of position 0 alone", ErrChunk)
	}
	if b.n, err = sum(b.segments, limit); err == nil && b.n%4 != 0 {
		err = fmt.Errorf("%w: a message of %d octets", ErrChunk, b.n)
	}
	return err
}

// chunk adds the body up to a chunk, and the chunk.
func (c *Call) chunk(b *body, chunk []wire.ReadSegment, limit int) error {
	position := int64(chunk[0].Position)
	before := position - int64(c.Len)
	if position%4 != 0 || before < 4 || before > int64(b.n-b.at) {
		return fmt.Errorf("%w: a chunk at position %d", ErrChunk, position)
	}
	n, err := sum(chunk, limit)
	if err != nil {
		return err
	}
	c.piece(b, int(before))
	if b.inline != nil && !hasLength(b.inline[b.at-4:], n) {
		return fmt.Errorf("%w: %d octets at position %d, of another length", ErrChunk, n, position)
	}
	c.opaques = append(c.opaques, opaque{at: c.Len, len: n})
	end := c.Len + wire.Padded(n)
	if end > limit {
		return fmt.Errorf("%w: a call of more than %d octets", ErrChunk, limit)
	}
	for _, s := range chunk {
		c.Reads = append(c.Reads, Read{Handle: s.Handle, Offset: s.Offset, At: c.Len, Len: int(s.Length)})
		c.Len += int(s.Length)
	}
	c.Len = end
	return nil
}

// piece adds n octets of the body.
func (c *Call) piece(b *body, n int) {
	if n > 0 && b.segments == nil {
		c.Copies = append(c.Copies, Copy{From: b.at, At: c.Len, Len: n})
		c.Len += n
		b.at += n
		return
	}
	b.at += n
	for n > 0 {
		s := &b.segments[0]
		k := min(n, int(s.Length)-b.used)
		c.Reads = append(c.Reads, Read{Handle: s.Handle, Offset: s.Offset + uint64(b.used), At: c.Len, Len: k})
		c.Len += k
		n -= k
		if b.used += k; b.used == int(s.Length) {
			b.segments, b.used = b.segments[1:], 0
		}
	}
}

// hasLength reports whether n is the length of the opaque whose length word begins b, with or without its pad.
func hasLength(b []byte, n int) bool {
	length := uint64(binary.BigEndian.Uint32(b))
	return uint64(n) >= length && uint64(n) <= (length+3)&^3
}

// Opaques reports whether f is true for each opaque that came in a chunk of its own. at is its offset in the message.
func (c *Call) Opaques(f func(at int) bool) bool {
	for _, o := range c.opaques {
		if !f(o.at) {
			return false
		}
	}
	return true
}

// Finish adds the pads to a message that is otherwise complete, and checks the lengths of the opaques that came in
// chunks.
func (c *Call) Finish(msg []byte) error {
	for _, o := range c.opaques {
		word := msg[o.at-4:]
		if !hasLength(word, o.len) {
			return fmt.Errorf("%w: %d octets where the message has another length", ErrChunk, o.len)
		}
		length := int(binary.BigEndian.Uint32(word))
		clear(msg[o.at+length : o.at+wire.Padded(length)])
	}
	return nil
}
