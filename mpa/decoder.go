package mpa

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/transport"
)

// minULPDU is the length of the shortest DDP segment: a tagged header without payload.
// The RFCs have no code for a shorter ULPDU; it is reported as a wrong length.
const minULPDU = taggedLen

// A decoder finds the FPDUs in the octets of one direction, by the chain of
// their lengths (RFC 5044 section 6). The segmentation of the octets does not
// matter, because it processes only whole FPDUs.
type decoder struct {
	pos     uint64 // of the next FPDU, including a Marker in front of it
	markers bool
	crc     bool
}

// An fpdu describes the octets b that a decoder was given: the ULPDU is
// b[off : off+n], and the whole FPDU has size octets. A size of 0 means that there is no
// whole FPDU yet.
type fpdu struct{ off, n, size int }

// next decodes the FPDU at the beginning of b, which must begin where the last one
// ended. It removes the Markers in the ULPDU from b, so the same octets must not be
// decoded twice.
//
// Nothing is changed or returned before the CRC has been verified. A Fault is
// final: the beginning of the next FPDU is then unknown.
func (d *decoder) next(b []byte) (fpdu, *transport.Fault) {
	lead := 0
	if d.markers && markerDue(d.pos) {
		lead = markerSize
	}
	if len(b) < lead+lengthSize {
		return fpdu{}, nil
	}
	n := int(binary.BigEndian.Uint16(b[lead:]))
	header := d.pos + uint64(lead)
	f := fpdu{off: lead + lengthSize, n: n, size: lead + d.size(header, n)}
	if len(b) < f.size {
		return fpdu{}, nil
	}
	if fault := d.check(b[:f.size], header); fault != nil {
		return fpdu{}, fault
	}
	if n < minULPDU {
		return fpdu{}, tooShort(n)
	}
	if d.markers {
		squeeze(b[lead:f.size], header)
	}
	d.pos += uint64(f.size)
	return f, nil
}

// size returns the size of the FPDU from its header on, for a ULPDU of n octets.
func (d *decoder) size(header uint64, n int) int {
	size := wholeSize(n)
	if d.markers {
		size = withMarkers(header, size)
	}
	return size
}

// check verifies a whole FPDU: first its CRC, which covers everything in front
// of it, then the Markers.
func (d *decoder) check(b []byte, header uint64) *transport.Fault {
	if d.crc {
		body, field := b[:len(b)-crcSize], b[len(b)-crcSize:]
		got, want := binary.LittleEndian.Uint32(field), crc32c.Checksum(body)
		if got != want {
			return d.badCRC(got, want)
		}
	}
	if d.markers {
		return d.checkMarkers(b, header)
	}
	return nil
}

func (d *decoder) badCRC(got, want uint32) *transport.Fault {
	return transport.Faultf(transport.MPACRC, "FPDU at octet %d carries %08x, its octets make %08x", d.pos, got, want)
}

func tooShort(n int) *transport.Fault {
	return transport.Faultf(transport.MPAMarker, "ULPDU of %d octets is shorter than any DDP header", n)
}

// checkMarkers verifies that every Marker of the FPDU points to its header.
func (d *decoder) checkMarkers(b []byte, header uint64) *transport.Fault {
	first := int(-d.pos % markerPeriod)
	for at := first; at < len(b); at += markerPeriod {
		want := uint16(0)
		if pos := d.pos + uint64(at); pos > header {
			want = uint16(pos - header)
		}
		if got := pointer(b[at:]); got != want {
			return transport.Faultf(transport.MPAMarker,
				"Marker at octet %d points %d octets back, the FPDU begins %d back", d.pos+uint64(at), got, want)
		}
	}
	return nil
}

// squeeze removes the Markers from an FPDU, from its header on.
func squeeze(b []byte, header uint64) {
	end := markerPeriod - int(header%markerPeriod) // the position of the next Marker
	for to := end; end < len(b); {
		from := end + markerSize
		end = min(end+markerPeriod, len(b))
		to += copy(b[to:], b[from:end])
	}
}

// padding returns the number of octets that bring a length field and n octets to a
// multiple of 4.
func padding(n int) int { return -(lengthSize + n) & 3 }
