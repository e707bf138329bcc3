package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the protocol.
const Version = 1

// A Proc is the procedure of a transport header.
type Proc uint32

// The procedures. RDMA_MSGP and RDMA_DONE are not used any more (RFC 8166 section 4.2.4).
const (
	Msg     Proc = 0 // the RPC message follows
	NoMsg   Proc = 1 // the RPC message is in a chunk
	MsgPad  Proc = 2
	Done    Proc = 3
	Failure Proc = 4
)

const (
	fixedLen   = 16 // xid, version, credits, procedure
	segmentLen = 16 // handle, length, offset
	// MinLen is the length of a header without chunks.
	MinLen = fixedLen + 3*4
	// ReadLen, WriteLen and ReplyLen are the lengths that a chunk of one segment adds to it.
	ReadLen  = 8 + segmentLen
	WriteLen = 8 + segmentLen
	ReplyLen = 4 + segmentLen
)

// Errors of Parse.
var (
	// ErrShort: even the part that all versions and procedures share is incomplete.
	ErrShort = errors.New("rpcrdma: a message shorter than the fixed part of its header")
	// ErrVersion: the header is of another version, and only its fixed part was read.
	ErrVersion = errors.New("rpcrdma: a header of an unknown version")
	// ErrMalformed: only the fixed part can be relied on.
	ErrMalformed = errors.New("rpcrdma: malformed header")
)

// A Segment is memory of the client. In the header of a reply, Length is how much of it was written.
type Segment struct {
	Handle uint32 // its STag
	Length uint32
	Offset uint64
}

// A ReadSegment is a segment of a chunk that the server reads. Segments of one chunk have the same position,
// which is the offset of the chunk in the whole RPC message.
type ReadSegment struct {
	Position uint32
	Segment
}

// A Chunk is memory that the server writes, in order.
type Chunk []Segment

// A Header is a transport header. Parse reuses the memory of its slices.
type Header struct {
	XID     uint32
	Version uint32
	Credits uint32
	Proc    Proc

	Reads    []ReadSegment
	Writes   []Chunk
	Reply    Chunk
	HasReply bool // there is a Reply chunk, though it may have no segments

	segments []Segment // of Writes and Reply
}

// Peek reads the fields with which the headers of all versions begin. ok is false if even these are incomplete.
func Peek(b []byte) (xid, version, credits uint32, ok bool) {
	if len(b) < fixedLen {
		return 0, 0, 0, false
	}
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), true
}

// Parse reads the header of a message, and returns its length. It reads only the fixed part of Done and Failure, and of
// unknown procedures.
func (h *Header) Parse(b []byte) (int, error) {
	h.Reads, h.Writes, h.Reply, h.HasReply, h.segments = h.Reads[:0], h.Writes[:0], nil, false, h.segments[:0]
	var ok bool
	if h.XID, h.Version, h.Credits, ok = Peek(b); !ok {
		return 0, ErrShort
	}
	h.Proc = Proc(binary.BigEndian.Uint32(b[12:]))
	if h.Version != Version {
		return fixedLen, ErrVersion
	}
	switch h.Proc {
	case Msg, NoMsg:
	case Done, Failure:
		return fixedLen, nil
	default:
		return fixedLen, fmt.Errorf("%w: procedure %d", ErrMalformed, h.Proc)
	}
	r := reader{b: b, at: fixedLen}
	h.parseReads(&r)
	h.parseWrites(&r)
	h.parseReply(&r)
	return r.at, r.err
}

func (h *Header) parseReads(r *reader) {
	for r.another("Read list") {
		position := r.word()
		h.Reads = append(h.Reads, ReadSegment{Position: position, Segment: r.segment()})
	}
}

func (h *Header) parseWrites(r *reader) {
	for r.another("Write list") {
		h.Writes = append(h.Writes, h.parseChunk(r))
	}
}

func (h *Header) parseReply(r *reader) {
	if r.another("Reply chunk") {
		h.Reply, h.HasReply = h.parseChunk(r), true
	}
}

func (h *Header) parseChunk(r *reader) Chunk {
	n := int64(r.word())
	if r.err == nil && n*segmentLen > int64(len(r.b)-r.at) {
		r.err = fmt.Errorf("%w: a chunk of %d segments", ErrMalformed, n)
	}
	if r.err != nil {
		return nil
	}
	// If the slice grows, the chunks read so far keep the older memory.
	first := len(h.segments)
	for range n {
		h.segments = append(h.segments, r.segment())
	}
	return Chunk(h.segments[first:len(h.segments):len(h.segments)])
}

// Append appends the header, of Msg or NoMsg.
func (h *Header) Append(b []byte) []byte {
	b = appendWords(b, h.XID, Version, h.Credits, uint32(h.Proc))
	for _, s := range h.Reads {
		b = s.append(appendWords(b, 1, s.Position))
	}
	b = appendWords(b, 0)
	for _, c := range h.Writes {
		b = c.append(appendWords(b, 1))
	}
	b = appendWords(b, 0)
	if h.HasReply {
		return h.Reply.append(appendWords(b, 1))
	}
	return appendWords(b, 0)
}

// Len returns the length of the header.
func (h *Header) Len() int {
	n := MinLen + len(h.Reads)*ReadLen
	for _, c := range h.Writes {
		n += 8 + len(c)*segmentLen
	}
	if h.HasReply {
		n += 4 + len(h.Reply)*segmentLen
	}
	return n
}

// OneHandle returns the handle that the header names, if it names exactly one.
func (h *Header) OneHandle() (handle uint32, ok bool) {
	for i := range h.Reads {
		if !theOne(&handle, &ok, h.Reads[i].Handle) {
			return 0, false
		}
	}
	for _, c := range h.Writes {
		if !c.oneHandle(&handle, &ok) {
			return 0, false
		}
	}
	if !h.Reply.oneHandle(&handle, &ok) {
		return 0, false
	}
	return handle, ok
}

// theOne reports whether another handle equals those before it.
func theOne(handle *uint32, found *bool, another uint32) bool {
	if *found {
		return *handle == another
	}
	*handle, *found = another, true
	return true
}

func (c Chunk) oneHandle(handle *uint32, found *bool) bool {
	for i := range c {
		if !theOne(handle, found, c[i].Handle) {
			return false
		}
	}
	return true
}

func (c Chunk) append(b []byte) []byte {
	b = appendWords(b, uint32(len(c)))
	for _, s := range c {
		b = s.append(b)
	}
	return b
}

func (s Segment) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(appendWords(b, s.Handle, s.Length), s.Offset)
}

// Wraps reports whether the memory of the segment would extend beyond the last offset.
func (s Segment) Wraps() bool { return s.Offset+uint64(s.Length) < s.Offset }
