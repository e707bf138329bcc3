package attack

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// The types of chunks (RFC 9260 section 3.2).
const (
	chunkData       = 0
	chunkInit       = 1
	chunkSack       = 3
	chunkHeartbeat  = 4
	chunkAbort      = 6
	chunkShutdown   = 7
	chunkError      = 9
	chunkForwardTSN = 192
)

// The kinds of messages of DDP over SCTP, and the control message that begins a session (RFC 5043).
const (
	ppidSegment = 16
	ppidControl = 17
	initiate    = 1
)

// sctp sends packets and chunks: either without an association, or an association, a session, and segments.
func sctp(d dice, at Target) talk {
	t := talk{act: Chunks}
	if d.one(4) { // blind packets
		for range 1 + d.IntN(8) {
			t.messages = append(t.messages, anyChunk(d, 0))
		}
		return t
	}
	first := d.Uint32()
	t.opening = []Step{{Act: Chunks, Data: initChunk(d, first)}, {Act: Await, Wait: replyTime}}
	if d.one(8) {
		t.opening = append(t.opening, Step{Act: Cookie, Data: d.octets(1 + d.IntN(8))}) // an altered cookie
	}
	t.opening = append(t.opening, Step{Act: Cookie}, Step{Act: Await, Wait: replyTime})
	number := uint16(0)
	data := func(ppid uint32, msg []byte) {
		msg = append(binary.BigEndian.AppendUint16(nil, number), msg...)
		t.messages = append(t.messages, dataChunk(first+uint32(number), ppid, msg))
		number++
	}
	data(ppidControl, append([]byte{0, initiate}, d.octets(pick(d, 0, 0, 4, 512, 513))...))
	for _, s := range segments(d, at, d.IntN(16)) {
		data(ppidSegment, s)
		if d.one(8) {
			t.messages = append(t.messages, anyChunk(d, first+uint32(number)))
		}
	}
	if d.one(3) {
		data(ppidControl, []byte{0, byte(d.IntN(9))})
	}
	return t
}

// chunk returns a chunk with its length, padded to four octets.
func chunk(kind, flags byte, value []byte) []byte {
	b := []byte{kind, flags}
	b = binary.BigEndian.AppendUint16(b, uint16(4+len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// initChunk returns an INIT, mostly with 16 streams each way and the indication of DDP (RFC 5043 section 5.1).
func initChunk(d dice, first uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1+d.Uint32N(1<<31))
	b = binary.BigEndian.AppendUint32(b, pick[uint32](d, 1<<20, 1<<20, 1<<20, 1500, 0))
	b = append(b, 0, pick[byte](d, 16, 16, 16, 1, 0), 0, pick[byte](d, 16, 16, 16, 1, 0))
	b = binary.BigEndian.AppendUint32(b, first)
	if !d.one(6) {
		b = append(b, 0xc0, 6, 0, 8, 0, 0, 0, pick[byte](d, 1, 1, 1, 2))
	}
	return chunk(chunkInit, 0, b)
}

// dataChunk returns an unordered message in one chunk.
func dataChunk(tsn, ppid uint32, msg []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, tsn)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, ppid)
	return chunk(chunkData, 7, append(b, msg...))
}

// anyChunk returns a chunk that is unexpected at this time, or at any time.
func anyChunk(d dice, tsn uint32) []byte {
	switch d.IntN(5) {
	case 0:
		return chunk(pick[byte](d, chunkAbort, chunkShutdown, chunkError, chunkForwardTSN, byte(d.Uint32())), byte(d.Uint32()), d.octets(d.IntN(64)))
	case 1:
		return chunk(chunkHeartbeat, 0, d.octets(pick(d, 0, 4, 40, 1000)))
	case 2: // a TSN that may be far ahead
		return dataChunk(tsn+d.Uint32N(1<<17), ppidSegment, d.octets(1+d.IntN(64)))
	case 3:
		b := binary.BigEndian.AppendUint32(nil, d.Uint32())
		return chunk(chunkSack, 0, append(b, d.octets(8+4*d.IntN(8))...))
	}
	return dataChunk(tsn, pick[uint32](d, ppidSegment, ppidControl, 0, d.Uint32()), octets.Send(1, 0, string(d.octets(d.IntN(1200)))))
}
