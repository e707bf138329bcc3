package attack

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// mpa sends Requests of all kinds, some of them followed by FPDUs without waiting for a Reply.
func mpa(d dice, at Target) talk {
	msgs := [][]byte{anyRequest(d)}
	for range d.IntN(3) {
		msgs = append(msgs, octets.FPDU(segments(d, at, 1)[0]))
	}
	return talk{messages: msgs}
}

// The flags of start-up frames (RFC 5044 section 7.1.1, RFC 6581 section 4).
const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagRejected = 0x20
	flagEnhanced = 0x10
)

// anyRequest returns a Request with any flags, revision and private data, whose length may be wrong.
func anyRequest(d dice) []byte {
	flags := byte(flagCRC)
	for range d.IntN(3) {
		flags ^= pick[byte](d, flagMarkers, flagCRC, flagRejected, flagEnhanced, 1, 8)
	}
	b := octets.Request(flags, pick[byte](d, 1, 1, 2, 2, 0, 3, 255), d.octets(pick(d, 0, 0, 4, 32, 248, 508, 512, 513)))
	if d.one(4) {
		binary.BigEndian.PutUint16(b[18:], pick[uint16](d, 0, 3, 4, 512, 513, 1024, 65535))
	}
	return b
}

// opens returns the steps of a correct set-up, by which the attacker reaches the layers above.
func opens(d dice, private []byte) []Step {
	request := octets.Request(flagCRC, 1, private)
	if d.one(2) { // IRD 16 and ORD 16; no RTR is requested
		request = octets.Request(flagCRC|flagEnhanced, 2, append([]byte{0, 16, 0, 16}, private...))
	}
	steps := []Step{{Act: Send, Data: request}}
	if !d.one(8) { // otherwise it does not wait for the Reply
		steps = append(steps, Step{Act: Await, Wait: openTime})
	}
	return steps
}
