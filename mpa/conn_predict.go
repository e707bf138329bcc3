package mpa

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/transport"
)

// If the layer above knows what comes next, as it does while a peer answers a Read, a read
// goes directly into place:
//
//	          FPDU                          FPDU
//	[length|header] [payload ] [pad|CRC|length|header] [payload ] [pad|CRC] [more]
//	    scratch      in place           scratch         in place   scratch   buffer
//
// FPDUs that arrived as predicted are verified in place. The rest is assembled in the
// read buffer, as if nothing had been predicted.

const (
	// predictMin is the size of ULPDU from which prediction pays: shorter ones are copied quickly.
	predictMin = 8 << 10
	// predictMax is how many octets of payload are predicted in one read, and predictMore
	// how many more octets the read accepts: few, because they are most likely to be
	// predicted the next time. The read buffer must have room for all of them.
	predictMax  = 480 << 10
	predictMore = 4 << 10
	// blindReads is how many reads predict nothing after a wrong prediction.
	blindReads = 8

	lengthSize    = 2
	predictedLead = lengthSize + transport.PredictedHeadLen
)

// A predictedRead is the memory that is borrowed for one predicted read.
type predictedRead struct {
	segs  []transport.PredictedSegment
	size  int      // octets of all of them as FPDUs
	leads []int    // where in ends the lead of each is; its tail follows
	ends  []byte   // leads and tails, alternating
	vec   [][]byte // the FPDUs as they are on the wire, and the memory for more octets
	todo  [][]byte // the part of vec to be read into
}

var predictedReads = freelist.List[predictedRead]{Retain: 8, New: func() *predictedRead { return new(predictedRead) }}

// predicts reports whether a prediction is worthwhile.
func (c *Conn) predicts() bool {
	if c.blind > 0 {
		c.blind--
		return false
	}
	_, ok := c.s.(transport.Scatterer)
	return ok && c.usual >= predictMin && !c.dec.markers
}

// readPredicted reads once, without parking.
func (c *Conn) readPredicted(p transport.Placer) error {
	q := predictedReads.Get()
	defer q.release()
	q.segs = p.Predict(q.segs[:0], c.usual, predictMax)
	free, held := c.in.free(), c.in.octets()
	q.layOut(free[:min(len(free), predictMore)])
	if c.predicted = q.begins(held); !c.predicted {
		p.Unpin()
		return c.readOnce(transport.NoWait)
	}
	n, err := c.s.(transport.Scatterer).Scatter(q.behind(len(held)))
	if n == 0 {
		p.Unpin()
		return c.came(0, err)
	}
	whole, fault := c.sort(q, len(held)+n)
	p.Unpin()
	for i := range whole {
		c.dec.pos += uint64(predictedSize(&q.segs[i]))
		if err := p.Placed(c.seq, &q.segs[i]); err != nil {
			return err
		}
		c.seq++
	}
	if fault != nil {
		return fault
	}
	return c.came(n, err)
}

// sort verifies the n octets that have arrived, including those that the read buffer held. It
// returns how many segments are whole and as predicted, and leaves the rest in the
// read buffer.
func (c *Conn) sort(q *predictedRead, n int) (whole int, fault *transport.Fault) {
	spread(q.vec, c.in.octets())
	c.in.r = c.in.w
	c.in.w += max(0, n-q.size)
	at := 0 // octets of the whole segments
	for ; whole < len(q.segs); whole++ {
		size := predictedSize(&q.segs[whole])
		if at+size > n {
			break
		}
		if !q.asPredicted(whole) {
			c.blind, c.usual, c.predicted = blindReads, 0, false
			break
		}
		if c.dec.crc {
			if got, want := q.digests(whole); got != want {
				return whole, transport.Faultf(transport.MPACRC, "FPDU at octet %d carries %08x, its octets make %08x", c.dec.pos+uint64(at), got, want)
			}
		}
		at += size
	}
	c.in.prepend(q.vec, at, min(n, q.size)-at)
	return whole, nil
}

// predictedSize returns the size of the FPDU of f.
func predictedSize(f *transport.PredictedSegment) int {
	n := transport.PredictedHeadLen + len(f.Payload)
	return lengthSize + n + padding(n) + crcSize
}

// layOut builds vec from the segments, followed by more.
func (q *predictedRead) layOut(more []byte) {
	q.size = 0
	room := 0
	for i := range q.segs {
		size := predictedSize(&q.segs[i])
		q.size += size
		room += size - len(q.segs[i].Payload)
	}
	q.ends = slices.Grow(q.ends[:0], room)[:room]
	q.vec, q.leads = q.vec[:0], q.leads[:0]
	from, at := 0, 0
	for i := range q.segs {
		f := &q.segs[i]
		q.leads = append(q.leads, at)
		q.vec = append(q.vec, q.ends[from:at+predictedLead], f.Payload)
		from = at + predictedLead
		at += predictedSize(f) - len(f.Payload)
	}
	q.vec = append(q.vec, q.ends[from:], more)
}

// lead returns the expected beginning of the FPDU of the i-th segment.
func (q *predictedRead) lead(i int) (b [predictedLead]byte) {
	f := &q.segs[i]
	binary.BigEndian.PutUint16(b[:], uint16(len(f.Head)+len(f.Payload)))
	copy(b[lengthSize:], f.Head[:])
	return b
}

// begins reports whether held can be the beginning of the first FPDU.
func (q *predictedRead) begins(held []byte) bool {
	if len(q.segs) == 0 || len(held) >= predictedSize(&q.segs[0]) {
		return false
	}
	lead := q.lead(0)
	n := min(len(held), len(lead))
	return bytes.Equal(held[:n], lead[:n])
}

// behind returns vec after its first n octets.
func (q *predictedRead) behind(n int) [][]byte {
	q.todo = append(q.todo[:0], q.vec...)
	todo := q.todo
	for n >= len(todo[0]) {
		n -= len(todo[0])
		todo = todo[1:]
	}
	todo[0] = todo[0][n:]
	return todo
}

// asPredicted reports whether the i-th FPDU begins as it should.
func (q *predictedRead) asPredicted(i int) bool {
	lead := q.lead(i)
	return bytes.Equal(q.ends[q.leads[i]:][:predictedLead], lead[:])
}

// digests returns the CRC that the i-th FPDU carries, and the CRC of its octets.
func (q *predictedRead) digests(i int) (got, want uint32) {
	f := &q.segs[i]
	ends := q.ends[q.leads[i]:]
	tail := ends[predictedLead:]
	pad := padding(transport.PredictedHeadLen + len(f.Payload))
	want = crc32c.Update(0, ends[:predictedLead])
	want = crc32c.Update(want, f.Payload)
	want = crc32c.Update(want, tail[:pad])
	return binary.LittleEndian.Uint32(tail[pad:]), want
}

// release drops the references to the memory of others.
func (q *predictedRead) release() {
	clear(q.segs)
	clear(q.vec)
	clear(q.todo)
	predictedReads.Put(q)
}

// spread writes p into vec.
func spread(vec [][]byte, p []byte) {
	for i := 0; len(p) > 0; i++ {
		p = p[blockcopy.Copy(vec[i], p):]
	}
}
