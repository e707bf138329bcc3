package attack

import (
	"encoding/binary"
	"slices"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// cm sends Requests of authenticated set-up as a host without a key, and what would follow them.
func cm(d dice, at Target) talk {
	request := octets.Request(flagCRC|flagEnhanced, 2, append([]byte{0, 16, 0, 16}, authBlock(d)...))
	t := talk{messages: [][]byte{request}}
	if d.one(2) { // the first message, with a wrong MAC
		first := slices.Concat([]byte("SCM2\x01\x01\x01\x03"), d.octets(32))
		t.messages = append(t.messages, octets.FPDU(octets.Send(1, 0, string(first))))
	}
	if d.one(2) {
		t.messages = append(t.messages, octets.FPDU(segments(d, at, 1)[0]))
	}
	return t
}

// authBlock returns the block of a Request: header, key, name, time, nonce, number of the QP, private data and MAC.
func authBlock(d dice) []byte {
	app := d.octets(pick(d, 0, 0, 1, 16, 300))
	b := append([]byte("SCM2"), pick[byte](d, 1, 1, 1, 2), pick[byte](d, 1, 1, 2, 3), pick[byte](d, 1, 1, 0, 0x80), pick[byte](d, 1, 1, 1, 2, 3, 4))
	b = binary.BigEndian.AppendUint64(b, pick[uint64](d, 1, 1, 1, 2, d.Uint64()))
	b = append(b, d.octets(16+8+16+4)...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(app)))
	b = append(b, 0, 0)
	if d.one(4) { // a public key, as of suite 2
		b = append(b, d.octets(32)...)
	}
	b = append(b, app...)
	return append(b, d.octets(32)...)
}
