package powercut

import (
	"encoding/binary"
	"math/rand/v2"
)

const (
	// Streams is the number of connections.
	Streams = 4
	// FileSize is what the target registers, in octets.
	FileSize = Streams * areaLen

	slots       = 48
	slotLen     = 5000
	firstRecord = 4096
	areaLen     = 60 * 4096
)

// slotOf returns the offset of record n in its area.
func slotOf(n uint64) int { return firstRecord + int(n%slots)*slotLen }

// record fills the front of p, which is a slot's length, with record n of a connection
// and returns it. Records differ in all octets, and in length.
func record(p []byte, stream int, n uint64) []byte {
	lot := rand.New(rand.NewPCG(n, uint64(stream)))
	p = p[:1+lot.IntN(slotLen)]
	var word [8]byte
	for rest := p; len(rest) > 0; rest = rest[min(8, len(rest)):] {
		binary.LittleEndian.PutUint64(word[:], lot.Uint64())
		copy(rest, word[:])
	}
	return p
}
