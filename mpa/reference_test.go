package mpa

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/goiwarp/iwarp/internal/octettest"
)

var unhex = octettest.Hex

// castagnoli makes the CRCs of the reference, by another package than the
// encoder's.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// reference makes FPDUs word by word, as RFC 5044 describes it. The encoder
// and the decoder are compared with it.
type reference struct {
	pos     uint64
	markers bool
	crc     bool
	// What is not as it should be, for tests of the receiver:
	reserved uint16 // in every Marker
	pointer  int    // added to every FPDUPTR
	pad      byte
	field    uint32 // flips bits of the CRC field
}

func (r *reference) fpdu(b, ulpdu []byte) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	body = append(body, ulpdu...)
	for len(body)%4 != 0 {
		body = append(body, r.pad)
	}
	start, header, begun := len(b), uint64(0), false
	marker := func() {
		if !r.markers || r.pos%512 != 0 {
			return
		}
		pointer := 0
		if begun {
			pointer = int(r.pos - header)
		}
		b = binary.BigEndian.AppendUint16(b, r.reserved)
		b = binary.BigEndian.AppendUint16(b, uint16(pointer+r.pointer))
		r.pos += 4
	}
	for ; len(body) > 0; body = body[4:] {
		marker()
		if !begun {
			header, begun = r.pos, true
		}
		b = append(b, body[:4]...)
		r.pos += 4
	}
	marker()
	sum := uint32(0)
	if r.crc {
		sum = crc32.Checksum(b[start:], castagnoli)
	}
	r.pos += 4
	return binary.LittleEndian.AppendUint32(b, sum^r.field)
}

func (r *reference) stream(ulpdus ...[]byte) (b []byte) {
	for _, u := range ulpdus {
		b = r.fpdu(b, u)
	}
	return b
}

// octets is n octets that differ from their neighbours and from zero.
func octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

// encoded is what the encoder makes of segments, each in a head of at most 18
// octets and the rest as payload.
func encoded(e *encoder, stage bool, ulpdus ...[]byte) []byte {
	b := new(batch)
	for _, u := range ulpdus {
		head := min(len(u), 18)
		e.encode(b, u[:head], [][]byte{u[head:]}, len(u), stage)
	}
	var wire []byte
	for _, p := range b.pending() {
		wire = append(wire, p...)
	}
	b.release()
	return wire
}

// decoded is what the decoder finds in b, and what it says in the end.
func decoded(d *decoder, b []byte) (ulpdus [][]byte, err error) {
	b = append([]byte(nil), b...)
	for {
		f, fault := d.next(b)
		if fault != nil {
			return ulpdus, fault
		}
		if f.size == 0 {
			return ulpdus, nil
		}
		ulpdus = append(ulpdus, b[f.off:f.off+f.n])
		b = b[f.size:]
	}
}
