package iwarp_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A reference takes the octets of a peer as the RFCs say, one octet after the other and with a copy of everything.
// It has nothing in common with the receive path of the library except the codes of errors. It does not know RFC 7306.
type reference struct {
	crc      bool
	regions  map[stag.STag]*refRegion
	receives [][]byte // what is posted
	reads    []refRead

	due      [4]uint32    // the next MSN of each queue
	came     map[int]bool // the octets of the message that is due
	taken    []refMessage
	answered int // Reads
	got      uint32
	open     bool // the last segment has left its message unfinished
	unsure   bool // there was something that the reference does not know
	asked    bool // the peer has read
	racy     bool // it has invalidated an STag then, maybe while it was read
}

// A refRegion is one that the peer may use in all ways, and invalidate; or the sink of Reads alone.
type refRegion struct {
	base uint64
	mem  []byte
	sink bool
	dead bool
}

// A refRead is an RDMA Read that is outstanding.
type refRead struct {
	sink stag.STag
	to   uint64
	len  uint32
}

// A refMessage is a message that has taken a receive.
type refMessage struct {
	octets      []byte
	invalidated stag.STag
}

// noCode means that the connection has ended without an error in its octets.
const noCode transport.Code = 0xffff

// receive takes all octets, and returns the error that ends the connection.
func (r *reference) receive(b []byte) transport.Code {
	for len(b) >= 2 {
		n := int(binary.BigEndian.Uint16(b))
		size := (2+n+3)/4*4 + 4
		if size > len(b) {
			break
		}
		if r.crc && binary.LittleEndian.Uint32(b[size-4:]) != crc32.Checksum(b[:size-4], crc32.MakeTable(crc32.Castagnoli)) {
			return transport.MPACRC
		}
		if n < 14 {
			return transport.MPAMarker
		}
		if c := r.segment(b[2 : 2+n]); c != noCode || r.unsure {
			return c
		}
		b = b[size:]
	}
	if len(b) == 0 && (r.answered < len(r.reads) || r.open) { // the peer has ended, and will not answer, or not go on
		return transport.RDMAPStreamCatastrophic
	}
	return noCode
}

func (r *reference) segment(b []byte) transport.Code {
	r.open = b[0]&0x40 == 0
	switch {
	case isTagged(b) && b[0]&3 != 1:
		return transport.DDPTaggedVersion
	case isTagged(b):
		return r.tagged(b[0]&0x40 != 0, b[1], stagAt(b, 2), binary.BigEndian.Uint64(b[6:]), b[14:])
	case len(b) < 18:
		return transport.DDPLocalCatastrophic
	case b[0]&3 != 1:
		return transport.DDPUntaggedVersion
	}
	return r.untagged(b[0]&0x40 != 0, b[1], b)
}

func (r *reference) tagged(last bool, control byte, st stag.STag, to uint64, payload []byte) transport.Code {
	switch {
	case control&0xc0 != 0x40:
		return transport.RDMAPVersion
	case control&15 == opResponse:
		return r.response(last, st, to, payload)
	case control&15 != opWrite:
		return transport.RDMAPOpcode
	}
	return r.place(st, to, payload, true)
}

// place puts octets into a region, all or none.
func (r *reference) place(st stag.STag, to uint64, payload []byte, remote bool) transport.Code {
	if len(payload) == 0 {
		return noCode
	}
	g := r.regions[st]
	switch c := g.check(to, uint64(len(payload)), remote); c {
	case transport.RDMAPInvalidSTag:
		return transport.DDPInvalidSTag
	case transport.RDMAPAccess: // DDP has no code of its own
		return transport.DDPNotAssociated
	case transport.RDMAPWrap:
		return transport.DDPWrap
	case transport.RDMAPBounds:
		return transport.DDPBounds
	}
	copy(g.mem[to-g.base:], payload)
	return noCode
}

// check compares octets with the bounds of a region; nil: there is none. remote: the peer needs a right.
func (g *refRegion) check(to, n uint64, remote bool) transport.Code {
	switch {
	case g == nil || g.dead:
		return transport.RDMAPInvalidSTag
	case remote && g.sink:
		return transport.RDMAPAccess
	case to > math.MaxUint64-n:
		return transport.RDMAPWrap
	case to < g.base || to+n > g.base+uint64(len(g.mem)):
		return transport.RDMAPBounds
	}
	return noCode
}

// response takes the next segment of the response to the oldest Read, or returns an error.
func (r *reference) response(last bool, st stag.STag, to uint64, payload []byte) transport.Code {
	if r.answered == len(r.reads) {
		return transport.RDMAPOpcode
	}
	read := r.reads[r.answered]
	n, left := uint32(len(payload)), read.len-r.got
	switch {
	case n > 0 && st != read.sink:
		return transport.DDPInvalidSTag
	case n > 0 && to != read.to+uint64(r.got), n > left, last && n < left:
		return transport.DDPBounds
	}
	if c := r.place(st, to, payload, false); c != noCode {
		return c
	}
	r.got += n
	if last {
		r.answered, r.got = r.answered+1, 0
	}
	return noCode
}

func (r *reference) untagged(last bool, control byte, b []byte) transport.Code {
	qn, msn, mo := binary.BigEndian.Uint32(b[6:]), binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint32(b[14:])
	op, payload := control&15, b[18:]
	switch {
	case qn > 3:
		return transport.DDPQueue
	case control&0xc0 != 0x40:
		return transport.RDMAPVersion
	case op >= 8:
		r.unsure = true
		return noCode
	case op >= opSend && op <= 6 && qn == 0:
		return r.send(last, op, stagAt(b, 2), msn, mo, payload)
	case op == opRead && qn == 1:
		return r.single(last, mo, len(payload), 28, msn, 1, func() transport.Code { return r.readRequest(payload) })
	case op == 7 && qn == 2:
		r.unsure = true
		return noCode
	}
	return transport.RDMAPOpcode
}

// send takes a segment of a Send.
func (r *reference) send(last bool, op byte, st stag.STag, msn, mo uint32, payload []byte) transport.Code {
	if msn != r.due[0]+1 {
		return transport.DDPMSNRange
	}
	if len(r.taken) == len(r.receives) {
		return transport.DDPNoBuffer
	}
	buf, end := r.receives[len(r.taken)], uint64(mo)+uint64(len(payload))
	switch {
	case uint64(mo) > uint64(len(buf)):
		return transport.DDPOffset
	case end > uint64(len(buf)):
		return transport.DDPTooLong
	}
	for i := range payload {
		if r.came[int(mo)+i] {
			return transport.DDPOffset
		}
	}
	if last && (len(r.came) != int(mo) || !r.begins(int(mo))) {
		return transport.DDPOffset
	}
	for i := range payload {
		r.came[int(mo)+i] = true
	}
	copy(buf[mo:], payload)
	if !last {
		return noCode
	}
	clear(r.came)
	r.due[0]++
	m := refMessage{octets: bytes.Clone(buf[:end])}
	if op == 4 || op == 6 {
		g := r.regions[st]
		if g == nil || g.dead {
			return transport.RDMAPOpNoInvalidate
		}
		if g.sink {
			r.unsure = true
			return noCode
		}
		g.dead, m.invalidated = true, st
		r.racy = r.racy || r.asked
	}
	r.taken = append(r.taken, m)
	return noCode
}

// begins reports whether the first n octets of the message that is due have come.
func (r *reference) begins(n int) bool {
	for i := range n {
		if !r.came[i] {
			return false
		}
	}
	return true
}

// single takes a message that must have one segment.
func (r *reference) single(last bool, mo uint32, n, most int, msn uint32, qn int, deliver func() transport.Code) transport.Code {
	switch {
	case !last:
		return transport.RDMAPStreamCatastrophic
	case mo != 0:
		return transport.DDPOffset
	case n > most:
		return transport.DDPTooLong
	case msn != r.due[qn]+1:
		return transport.DDPMSNRange
	}
	r.due[qn]++
	return deliver()
}

func (r *reference) readRequest(b []byte) transport.Code {
	if len(b) != 28 {
		return transport.RDMAPStreamCatastrophic
	}
	size := binary.BigEndian.Uint32(b[12:])
	if size == 0 {
		return noCode
	}
	r.asked = true
	return r.regions[stagAt(b, 16)].check(binary.BigEndian.Uint64(b[20:]), uint64(size), true)
}
