package dump

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

// Constants of FPDUs (RFC 5044 sections 3 and 4).
const (
	lengthSize     = 2
	crcSize        = 4
	markerSize     = 4
	markerDistance = 512
	maxULPDU       = 64768
)

// An fpdu is one FPDU, without its Markers.
type fpdu struct {
	body          []byte // ULPDU_Length, ULPDU and PAD
	markers       int
	bad           []string // what is wrong with Markers
	crc, computed uint32
}

// ulpdu returns the segment.
func (f *fpdu) ulpdu() []byte {
	return f.body[lengthSize : lengthSize+int(binary.BigEndian.Uint16(f.body))]
}

// cut parses the FPDU at the beginning of b. pos is the position of b in the octets that the sender has sent in
// Full Operation. n is the length of the FPDU, 0 if it is not complete.
func cut(b []byte, pos uint64, markers bool) (f fpdu, n int) {
	if !markers {
		if len(b) < lengthSize {
			return f, 0
		}
		size := bodySize(b)
		if len(b) < size+crcSize {
			return f, 0
		}
		f.body = b[:size]
		f.crc, f.computed = binary.LittleEndian.Uint32(b[size:]), crc32c.Checksum(f.body)
		return f, size + crcSize
	}
	header, size := -1, lengthSize+2 // the length is in the first word
	for {
		if (pos+uint64(n))%markerDistance == 0 {
			if len(b) < n+markerSize {
				return f, 0
			}
			f.marker(b[n:], n, header)
			n += markerSize
		}
		if len(f.body) == size {
			break
		}
		if len(b) < n+4 {
			return f, 0
		}
		if header < 0 {
			header, size = n, bodySize(b[n:])
		}
		f.body = append(f.body, b[n:n+4]...)
		n += 4
	}
	if len(b) < n+crcSize {
		return f, 0
	}
	f.crc, f.computed = binary.LittleEndian.Uint32(b[n:]), crc32c.Checksum(b[:n])
	return f, n + crcSize
}

// bodySize returns the length of an FPDU without CRC and Markers.
func bodySize(b []byte) int { return (lengthSize + int(binary.BigEndian.Uint16(b)) + 3) &^ 3 }

// marker checks the Marker at the offset n of the FPDU whose header is at header, -1 if it is still to come.
func (f *fpdu) marker(b []byte, n, header int) {
	f.markers++
	back, want := int(binary.BigEndian.Uint16(b[2:])&^3), 0
	if header >= 0 {
		want = n - header
	}
	if back != want {
		f.bad = append(f.bad, fmt.Sprintf("a Marker that points %d octets back, where the FPDU begins %d octets before it (RFC 5044 section 4.3)", back, want))
	}
}

// fpdu reads one FPDU.
func (f *framing) fpdu() bool {
	pos := uint64(f.base - f.full)
	x, n := cut(f.buf, pos, f.markers)
	if n == 0 {
		return false
	}
	bad := f.crc && x.crc != x.computed
	if bad && !f.agreed() { // there may be Markers, which the capture does not reveal
		f.lose()
		f.starts = f.starts[1:]
		return true
	}
	f.emit(&x, pos)
	f.eat(n)
	if bad { // then the length is not certain either
		f.lose()
	}
	return true
}

// emit appends the record of an FPDU.
func (f *framing) emit(x *fpdu, pos uint64) {
	c := f.h.c
	c.d.decoded = true
	r := c.record(f.h.dir, KindFPDU)
	segment := x.ulpdu()
	r.MPA = &MPA{Length: len(segment), Position: pos, CRC: CRCUnused, Markers: x.markers}
	if f.crc {
		r.MPA.CRC = CRCValid
		if x.crc != x.computed {
			r.MPA.CRC = CRCInvalid
			r.fail("invalid CRC: %#08x is there, %#08x is right (RFC 5044 section 4.4)", x.crc, x.computed)
		}
	}
	r.Errors = append(r.Errors, x.bad...)
	if len(segment) > maxULPDU {
		r.fail("an ULPDU of %d octets, more than the %d that are possible (RFC 5044 section 3)", len(segment), maxULPDU)
	}
	c.ddp(r, f.h.dir, segment)
}
