package sctpudp

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

// An SCTP packet is a common header and chunks (RFC 9260 section 3):
//
//	source port (2) | destination port (2) | verification tag (4) | CRC32c (4)
//	type (1) | flags (1) | length (2) | value, padded to four octets
const (
	headerSize      = 12
	chunkHeaderSize = 4
	dataHeaderSize  = 16 // of a DATA chunk: TSN, stream, SSN and PPID after the chunk header

	// maxPacket is the size of the largest packet that pion accepts.
	maxPacket = 8192
)

const (
	chunkData             = 0
	chunkInit             = 1
	chunkInitAck          = 2
	chunkSack             = 3
	chunkHeartbeat        = 4
	chunkHeartbeatAck     = 5
	chunkAbort            = 6
	chunkShutdown         = 7
	chunkShutdownAck      = 8
	chunkError            = 9
	chunkCookieEcho       = 10
	chunkCookieAck        = 11
	chunkShutdownComplete = 14 // the last one of RFC 9260

	// How to handle an unknown chunk (RFC 9260 section 3.2).
	chunkSkip   = 0x80 // clear: everything after it is ignored
	chunkReport = 0x40
)

// flagReflected, T, says that the tag is reflected: the tag of the packet that is answered
// (RFC 9260 section 8.4).
const flagReflected = 1

// The flags of a DATA chunk: E marks the last chunk of a message, U an unordered message. A
// chunk that is a whole message has U, B and E.
const (
	flagEnding    = 1
	flagUnordered = 4
	flagsMessage  = 7
)

// flagImmediate, I, requests that a DATA chunk be acknowledged at once (RFC 7053). It is set on
// session control, since a call waits for its acknowledgement; on a chunk after which nothing
// can be sent until it is acknowledged; and on the only outstanding chunk, so that its loss is
// noticed soon.
const flagImmediate = 8

func pad(n int) int { return (n + 3) &^ 3 }

// checksum returns the checksum of a packet. In the packet it is little-endian.
func checksum(p []byte) uint32 {
	var zero [4]byte
	crc := crc32c.Checksum(p[:8])
	crc = crc32c.Update(crc, zero[:])
	return crc32c.Update(crc, p[headerSize:])
}

// valid reports whether p is a packet with a correct checksum and complete chunks. A checksum
// of zero is a checksum like any other: DDP needs the digest (RFC 5041 section 5).
func valid(p []byte) bool {
	if len(p) < headerSize+chunkHeaderSize || binary.LittleEndian.Uint32(p[8:]) != checksum(p) {
		return false
	}
	for rest := p[headerSize:]; len(rest) > 0; {
		if len(rest) < chunkHeaderSize {
			return false
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < chunkHeaderSize || n > len(rest) || rest[0] == chunkData && n < dataHeaderSize {
			return false
		}
		rest = rest[min(pad(n), len(rest)):]
	}
	return true
}

// A chunk is a chunk with its header, without padding.
type chunk []byte

func (c chunk) kind() byte { return c[0] }

// split returns the first of the chunks of a valid packet, and the rest.
func split(chunks []byte) (c chunk, rest []byte) {
	n := int(binary.BigEndian.Uint16(chunks[2:]))
	return chunks[:n], chunks[min(pad(n), len(chunks)):]
}

// A kindSet is a set of kinds of chunks, one bit each; kinds above 63 have none.
type kindSet uint64

// kindsOf returns the kinds of the chunks of a valid packet.
func kindsOf(p []byte) (s kindSet) {
	for c, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		c, rest = split(rest)
		s |= 1 << c.kind()
	}
	return s
}

func (s kindSet) has(kind byte) bool { return s&(1<<kind) != 0 }

// hasCauses reports whether the value of an ABORT has the form of error causes; otherwise it is not an ABORT (RFC 9260
// section 3.3.7).
func (c chunk) hasCauses() bool {
	for b := c[chunkHeaderSize:]; len(b) > 0; {
		if len(b) < paramSize {
			return false
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < paramSize || n > len(b) {
			return false
		}
		b = b[min(pad(n), len(b)):]
	}
	return true
}

// DATA chunks.

func (c chunk) tsn() uint32    { return binary.BigEndian.Uint32(c[4:]) }
func (c chunk) stream() uint16 { return binary.BigEndian.Uint16(c[8:]) }
func (c chunk) ppid() uint32   { return binary.BigEndian.Uint32(c[12:]) }
func (c chunk) ends() bool     { return c[1]&flagEnding != 0 }
func (c chunk) whole() bool    { return c[1]&flagsMessage == flagsMessage }
func (c chunk) octets() int    { return len(c) - dataHeaderSize }

// window returns the window of a SACK. The TSN of a SACK is in the same place as that of a DATA chunk.
func (c chunk) window() uint32 { return binary.BigEndian.Uint32(c[8:]) }

func (c chunk) setWindow(octets uint32) { binary.BigEndian.PutUint32(c[8:], octets) }

// ports are the two SCTP ports of a packet.
type ports struct{ source, destination uint16 }

func portsOf(p []byte) ports {
	return ports{binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])}
}

func tagOf(p []byte) uint32 { return binary.BigEndian.Uint32(p[4:]) }

// seal fills in the common header.
func seal(p []byte, at ports, tag uint32) {
	address(p, at, tag)
	binary.LittleEndian.PutUint32(p[8:], checksum(p))
}

// address fills in the common header without a checksum.
func address(p []byte, at ports, tag uint32) {
	binary.BigEndian.PutUint16(p, at.source)
	binary.BigEndian.PutUint16(p[2:], at.destination)
	binary.BigEndian.PutUint32(p[4:], tag)
	binary.BigEndian.PutUint32(p[8:], 0)
}

// appendChunk appends a chunk and its padding.
func appendChunk(p []byte, kind, flags byte, value []byte) []byte {
	n := chunkHeaderSize + len(value)
	p = append(p, kind, flags, byte(n>>8), byte(n))
	p = append(p, value...)
	return append(p, make([]byte, pad(n)-n)...)
}

// packet returns a packet with a single chunk.
func packet(at ports, tag uint32, kind, flags byte, value []byte) []byte {
	p := appendChunk(make([]byte, headerSize, headerSize+chunkHeaderSize+len(value)+3), kind, flags, value)
	seal(p, at, tag)
	return p
}
