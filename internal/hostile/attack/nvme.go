package attack

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// nvme connects a queue, logs in, and sends valid and invalid commands.
func nvme(d dice, at Target) talk {
	private := make([]byte, 32)
	binary.LittleEndian.PutUint16(private[2:], pick[uint16](d, 0, 0, 0, 1, 65535))  // queue
	binary.LittleEndian.PutUint16(private[4:], pick[uint16](d, 32, 32, 32, 0, 1))   // receives
	binary.LittleEndian.PutUint16(private[6:], pick[uint16](d, 31, 31, 31, 0, 128)) // commands
	t := talk{opening: opens(d, private)}
	if !d.one(8) {
		t.messages = append(t.messages, login(d, at))
	}
	for range d.IntN(24) {
		t.messages = append(t.messages, command(d, at))
	}
	sent := uint32(0)
	t.frame = func(msg []byte) []byte {
		sent++
		return octets.FPDU(octets.Send(sent, 0, string(msg)))
	}
	return t
}

// login returns a Connect with its data in the capsule (NVMe over Fabrics 1.1 section 3.3).
func login(d dice, at Target) []byte {
	b := make([]byte, 64+1024)
	b[0], b[1], b[4] = 0x7f, 0x40, 0x01
	binary.LittleEndian.PutUint32(b[32:], 1024) // a data block in the capsule
	b[39] = 0x01
	binary.LittleEndian.PutUint16(b[44:], 31)
	data := b[64:]
	copy(data, d.octets(16))
	binary.LittleEndian.PutUint16(data[16:], 0xffff)
	copy(data[256:], at.NQN)
	copy(data[512:], "nqn.2026-11.org.example:attacker")
	return b
}

// command returns a Fabrics command, or one of the admin queue or of an I/O queue.
func command(d dice, at Target) []byte {
	b := make([]byte, 64)
	b[0] = pick[byte](d, 0x7f, 0x7f, 0x06, 0x02, 0x01, 0x00, 0x18, 0x0c, 0x09, 0x0a, 0x08, byte(d.Uint32()))
	b[1] = pick[byte](d, 0x40, 0x40, 0x40, 0, 0x80)
	binary.LittleEndian.PutUint16(b[2:], uint16(d.IntN(40)))
	if b[0] == 0x7f {
		b[4] = pick[byte](d, 0x00, 0x04, 0x01, 0x05)
	} else {
		binary.LittleEndian.PutUint32(b[4:], pick[uint32](d, 1, 1, 0, 0xffffffff))
	}
	binary.LittleEndian.PutUint64(b[24:], anyTO(d, at)) // a keyed SGL: address, length, key, type
	length := pick[uint32](d, 4096, 4096, 512, 0, 0xffffff)
	b[32], b[33], b[34] = byte(length), byte(length>>8), byte(length>>16)
	binary.LittleEndian.PutUint32(b[35:], uint32(anySTag(d, at)))
	b[39] = pick[byte](d, 0x40, 0x4f, 0x40, 0x01, byte(d.Uint32()))
	for at := 40; at < 64; at += 4 {
		if d.one(2) {
			binary.LittleEndian.PutUint32(b[at:], pick(d, d.Uint32N(16), d.Uint32()))
		}
	}
	if d.one(6) {
		b = append(b, d.octets(pick(d, 16, 512, 4096))...)
	}
	return b
}
