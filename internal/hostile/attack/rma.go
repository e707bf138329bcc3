package attack

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// sizes are the lengths of the messages of operations with keys, by their type.
var sizes = [...]int{0, 80, 72, 168, 96, 56, 96, 80, 56, 64, 64, 112, 56}

// rma sends a HELLO that offers no keys, and then messages of all types.
func rma(d dice, at Target) talk {
	t := talk{opening: opens(d, nil)}
	counter := uint64(0)
	hello := operation(d, 1, counter, 0)
	binary.BigEndian.PutUint16(hello[24:], 1) // suite 0
	binary.BigEndian.PutUint16(hello[26:], 0xffff)
	binary.BigEndian.PutUint32(hello[28:], 4096)
	binary.BigEndian.PutUint16(hello[32:], 16)
	for at, micros := range map[int]uint32{36: 500_000, 40: 100_000, 44: 0} {
		binary.BigEndian.PutUint32(hello[at:], micros)
	}
	t.messages = append(t.messages, hello)
	for range d.IntN(20) {
		counter++
		m := operation(d, pick(d, 2, 4, 4, 6, 6, 8, 1+d.IntN(12)), counter, 1+d.Uint64N(64))
		binary.BigEndian.PutUint64(m[24:], pick[uint64](d, 1, 1, 1, 2, d.Uint64())) // region
		if len(m) > 60 {
			binary.BigEndian.PutUint32(m[32:], pick[uint32](d, 1, 1, 0, d.Uint32())) // epoch
			binary.BigEndian.PutUint32(m[36:], uint32(anySTag(d, at)))
			binary.BigEndian.PutUint64(m[40:], pick(d, 0, 0, 16, d.Uint64())) // offset
			binary.BigEndian.PutUint32(m[56:], pick[uint32](d, 16, 512, 4096, 0, 0xffffffff))
		}
		t.messages = append(t.messages, m)
	}
	sent := uint32(0)
	t.frame = func(msg []byte) []byte {
		sent++
		return octets.FPDU(octets.Send(sent, 0, string(msg)))
	}
	return t
}

// operation returns a message with a correct header.
func operation(d dice, kind int, counter, id uint64) []byte {
	m := make([]byte, sizes[kind])
	if d.one(4) {
		copy(m[24:], d.octets(len(m)-24))
	}
	m[0], m[1] = 1, byte(kind)
	binary.BigEndian.PutUint16(m[4:], uint16(len(m)))
	binary.BigEndian.PutUint64(m[8:], counter)
	binary.BigEndian.PutUint64(m[16:], id)
	return m
}
