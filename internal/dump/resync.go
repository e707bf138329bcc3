package dump

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
)

// maxStarts is how many positions at which an FPDU may begin are kept.
const maxStarts = 256

// gap reports that octets are missing.
func (f *framing) gap(n int64) {
	if f.state == stateForeign || f.state == stateOver {
		return
	}
	if f.h.c.number != 0 || !f.midway {
		r := f.h.c.record(f.h.dir, KindGap)
		r.Octets, r.Text = n, "missing in the capture"
	}
	f.skipped += int64(len(f.buf))
	f.buf = nil
	f.base = f.h.pos
	switch f.state {
	case stateStart, stateWait:
		f.h.c.lose(f.h.dir)
		f.state = stateLost
	default:
		f.lose()
	}
}

// lose searches for the next FPDU. If neither a CRC nor Markers can make one certain, decoding ends.
func (f *framing) lose() {
	f.h.c.lose(f.h.dir)
	if f.agreed() && !f.crc && !f.markers {
		f.giveUp("without CRCs and Markers it is not certain where the next FPDU begins")
		return
	}
	if f.state != stateLost {
		f.state = stateLost
		f.starts = f.starts[:0]
		f.mayStart(f.base)
	}
}

// mayStart records that an FPDU may begin at a position.
func (f *framing) mayStart(at int64) {
	if n := len(f.starts); n < maxStarts && (n == 0 || f.starts[n-1] < at) {
		f.starts = append(f.starts, at)
	}
}

// search looks for a certain FPDU: one with a valid CRC at the beginning of a TCP segment, or, with Markers, one to
// which a Marker points.
func (f *framing) search() bool {
	if f.have && f.peer().state == stateStart && len(f.buf) <= maxEarly {
		return false // the other frame may still decide
	}
	start, ok := f.candidate()
	if !ok {
		return false
	}
	f.skipped += start - f.base
	f.eat(int(start - f.base))
	pos := uint64(f.base - f.full)
	if len(f.buf) < markerSize+lengthSize+2 {
		return false
	}
	if !f.plausible(pos) {
		f.reject()
		return true
	}
	x, n := cut(f.buf, pos, f.markers)
	switch crcNeeded := f.crc || !f.markers; {
	case n == 0:
		return false
	case crcNeeded && x.crc != x.computed, len(x.bad) > 0:
		f.reject()
		return true
	case crcNeeded:
		f.crc = true
	}
	if f.skipped > 0 {
		r := f.h.c.record(f.h.dir, KindGap)
		r.Octets, r.Text = f.skipped, "not decoded, up to the next FPDU that is certain"
		f.skipped = 0
	}
	f.state, f.starts = stateFull, nil
	return true
}

// candidate returns the next position at which an FPDU may begin and which is not before the present octets.
func (f *framing) candidate() (at int64, ok bool) {
	if f.markers {
		return f.marked()
	}
	for len(f.starts) > 0 && f.starts[0] < f.base {
		f.starts = f.starts[1:]
	}
	if len(f.starts) == 0 {
		f.skipped += int64(len(f.buf))
		f.eat(len(f.buf))
		return 0, false
	}
	return f.starts[0], true
}

// marked returns the beginning of an FPDU according to the next Marker.
func (f *framing) marked() (int64, bool) {
	pos := f.base - f.full
	for m := (pos + markerDistance - 1) / markerDistance * markerDistance; ; m += markerDistance {
		at := m - pos
		if at+markerSize > int64(len(f.buf)) {
			return 0, false
		}
		start := m - int64(binary.BigEndian.Uint16(f.buf[at+2:])&^3)
		if start != m && start >= markerSize && (start-markerSize)%markerDistance == 0 {
			start -= markerSize // this Marker belongs to the FPDU too
		}
		if start >= pos {
			return f.full + start, true
		}
	}
}

// reject drops a position at which there is no FPDU.
func (f *framing) reject() {
	if !f.markers {
		f.starts = f.starts[1:]
		return
	}
	n := min(len(f.buf), 4)
	f.skipped += int64(n)
	f.eat(n)
}

// plausible reports whether b can be the beginning of an FPDU.
func (f *framing) plausible(pos uint64) bool {
	b := f.buf
	if f.markers && pos%markerDistance == 0 {
		b = b[markerSize:]
	}
	n := binary.BigEndian.Uint16(b)
	return n >= ddp.TaggedLen && n <= maxULPDU && b[2]&3 == 1 && b[3]>>6 == 1
}
