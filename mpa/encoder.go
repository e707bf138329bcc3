package mpa

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/crc32c"
)

// lendMin is the size from which payload becomes a separate piece; less is copied.
const lendMin = 256

// fuseMin is the size from which the CRC of payload is computed while it is copied.
// Less is copied first, and so are the short spans between Markers, because the CRC of many
// octets at once is faster.
const fuseMin = 1024

var noOctets [3]byte // the PAD

// An encoder encodes the segments of one direction as FPDUs (RFC 5044 section 4).
type encoder struct {
	pos     uint64 // of the next octet on the wire
	header  uint64 // of the current FPDU
	markers bool
	crc     bool

	sum   uint32 // CRC32c of the FPDU up to the fresh octets
	fresh int    // octets at the end of the batch's last piece that are not in sum yet
}

// encode adds the FPDU of one segment, head and then the octets of payload, to
// out. The ULPDU has n octets, 1 to MaxMULPDU. With stage the payload is copied,
// otherwise lent to the batch.
func (e *encoder) encode(out *batch, head []byte, payload [][]byte, n int, stage bool) {
	if e.fitsWhole(out, n, stage) {
		e.whole(out, head, payload, n)
		return
	}
	if e.fitsLent(out, head, payload, n, stage) {
		e.lent(out, head, payload[0], n)
		return
	}
	e.begin(out)
	var length [lengthSize]byte
	binary.BigEndian.PutUint16(length[:], uint16(n))
	e.copy(out, length[:])
	e.copy(out, head)
	for _, p := range payload {
		switch {
		case !stage && len(p) >= lendMin:
			e.lend(out, p)
		case len(p) >= fuseMin && e.crc && !e.markers:
			e.fuse(out, p)
		default:
			e.copy(out, p)
		}
	}
	e.copy(out, noOctets[:padding(n)])
	e.end(out)
}

// fitsWhole reports whether an FPDU is only copied, without Markers, and fits in the
// chunk that is being filled.
func (e *encoder) fitsWhole(out *batch, n int, stage bool) bool {
	return !e.markers && (n < lendMin || stage && n < fuseMin) && out.room() >= wholeSize(n)
}

// wholeSize returns the size of the FPDU of a ULPDU of n octets, without Markers.
func wholeSize(n int) int { return lengthSize + n + padding(n) + crcSize }

// whole is encode for an FPDU that fitsWhole: it is assembled in place, and its CRC is
// computed at once.
func (e *encoder) whole(out *batch, head []byte, payload [][]byte, n int) {
	p := out.own(wholeSize(n))
	at := putHead(p, head, n)
	sum := uint32(0)
	switch {
	case !e.crc:
		for _, q := range payload {
			at += blockcopy.Copy(p[at:], q)
		}
	case len(payload) == 1:
		sum = crc32c.Join(p, at, payload[0])
		at += len(payload[0])
	default:
		sum = crc32c.Checksum(p[:at])
		for _, q := range payload {
			sum = crc32c.Copy(sum, p[at:], q)
			at += len(q)
		}
	}
	if pad := padding(n); pad > 0 {
		copy(p[at:], noOctets[:pad])
		if e.crc {
			sum = crc32c.Update(sum, noOctets[:pad])
		}
		at += pad
	}
	binary.LittleEndian.PutUint32(p[at:], sum)
	e.pos += uint64(len(p))
}

// fitsLent reports whether an FPDU is one lent piece between two of the batch's own, which
// fit in the chunk that is being filled, without Markers.
func (e *encoder) fitsLent(out *batch, head []byte, payload [][]byte, n int, stage bool) bool {
	return !e.markers && !stage && len(payload) == 1 && len(payload[0]) >= lendMin &&
		out.room() >= lengthSize+len(head)+padding(n)+crcSize
}

// lent is encode for an FPDU that fitsLent: both of its ends are assembled in place.
func (e *encoder) lent(out *batch, head, payload []byte, n int) {
	p := out.own(lengthSize + len(head))
	putHead(p, head, n)
	out.lend(payload)
	pad := padding(n)
	end := out.own(pad + crcSize)
	copy(end[:pad], noOctets[:])
	sum := uint32(0)
	if e.crc {
		sum = crc32c.Update(crc32c.Update(crc32c.Checksum(p), payload), end[:pad])
	}
	binary.LittleEndian.PutUint32(end[pad:], sum)
	e.pos += uint64(len(p) + len(payload) + len(end))
}

// The lengths of the headers of DDP's segments.
const (
	taggedLen   = 14
	untaggedLen = 18
)

// putHead stores the length and head of an FPDU of n octets at the beginning of p, and returns
// how many octets that takes. It loads a header in the pieces in which DDP has stored it, and
// stores the header of a small segment in the pieces in which the CRC will load it: other sizes
// would stall the processor.
func putHead(p, head []byte, n int) int {
	switch len(head) {
	case taggedLen:
		first, second, last := binary.BigEndian.Uint64(head), binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint16(head[12:])
		binary.BigEndian.PutUint64(p, uint64(n)<<48|first>>16)
		binary.BigEndian.PutUint64(p[8:], first<<48|uint64(second)<<16|uint64(last))
	case untaggedLen:
		first, second, last := binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:]), binary.BigEndian.Uint16(head[16:])
		binary.BigEndian.PutUint64(p, uint64(n)<<48|first>>16)
		binary.BigEndian.PutUint64(p[8:], first<<48|second>>16)
		binary.BigEndian.PutUint32(p[16:], uint32(second)<<16|uint32(last))
	default:
		binary.BigEndian.PutUint16(p, uint16(n))
		copy(p[lengthSize:], head)
	}
	return lengthSize + len(head)
}

// pieces returns the most pieces that an FPDU adds to a batch.
func (e *encoder) pieces(payload [][]byte, n int, stage bool) int {
	most := 3 // own octets before and after the payload, and one for the end of a chunk
	if stage {
		return most
	}
	most += 2 * len(payload)
	if e.markers {
		most += 2 * (n/markerStride + 1)
	}
	return most
}

func (e *encoder) begin(out *batch) {
	e.sum, e.fresh = 0, 0
	e.header = e.pos
	if e.markers && markerDue(e.pos) {
		e.marker(out)
		e.header = e.pos // after the Marker, which therefore says 0
	}
}

// end appends the CRC, with a Marker in front of it if one is due.
func (e *encoder) end(out *batch) {
	if e.markers && markerDue(e.pos) {
		e.marker(out)
	}
	e.settle(out)
	var field [crcSize]byte
	if e.crc {
		binary.LittleEndian.PutUint32(field[:], e.sum)
	}
	e.put(out, field[:])
	e.fresh = 0
}

// span returns how many of n octets come before the next Marker; it first appends a
// Marker if one is due.
func (e *encoder) span(out *batch, n int) int {
	if !e.markers {
		return n
	}
	if markerDue(e.pos) {
		e.marker(out)
	}
	return min(n, markerPeriod-int(e.pos%markerPeriod))
}

func (e *encoder) marker(out *batch) {
	var m [markerSize]byte
	e.put(out, putMarker(m[:0], e.header, e.pos))
}

// copy copies the octets of p into the batch, between Markers.
func (e *encoder) copy(out *batch, p []byte) {
	for len(p) > 0 {
		n := e.span(out, len(p))
		e.put(out, p[:n])
		p = p[n:]
	}
}

// put copies p into the batch. Its octets enter the CRC later, together with adjoining
// ones.
func (e *encoder) put(out *batch, p []byte) {
	for len(p) > 0 {
		room := out.room()
		if !out.grows {
			e.settle(out)
		}
		n := blockcopy.Copy(out.own(min(room, len(p))), p)
		e.fresh += n
		e.pos += uint64(n)
		p = p[n:]
	}
}

// fuse copies p with its CRC in one pass, without Markers.
func (e *encoder) fuse(out *batch, p []byte) {
	for len(p) > 0 {
		room := out.room()
		e.settle(out)
		n := min(room, len(p))
		e.sum = crc32c.Copy(e.sum, out.own(n), p[:n])
		e.pos += uint64(n)
		p = p[n:]
	}
}

// lend lends p to the batch, between Markers.
func (e *encoder) lend(out *batch, p []byte) {
	for len(p) > 0 {
		n := e.span(out, len(p))
		e.settle(out)
		out.lend(p[:n])
		if e.crc {
			e.sum = crc32c.Update(e.sum, p[:n])
		}
		e.pos += uint64(n)
		p = p[n:]
	}
}

// settle adds the fresh octets to the CRC. They are the end of the last piece: there are
// none when another piece begins.
func (e *encoder) settle(out *batch) {
	if e.fresh > 0 && e.crc {
		last := out.pieces[len(out.pieces)-1]
		e.sum = crc32c.Update(e.sum, last[len(last)-e.fresh:])
	}
	e.fresh = 0
}

// legal reports whether a ULPDU may have n octets.
func legal(n int) bool { return n > 0 && n <= int(MaxMULPDU) }
