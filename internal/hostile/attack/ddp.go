package attack

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// untaggedSize is the length of the header of an untagged segment.
const untaggedSize = 18

// ddp sends segments in good FPDUs, some of whose headers are wrong in one or more fields.
func ddp(d dice, at Target) talk {
	msgs := segments(d, at, 1+d.IntN(pick(d, 2, 8, 24))) // the peer ignores all messages after the first one that it refuses
	for range 1 + d.IntN(3) {
		if s := pick(d, msgs...); s[0]&0x80 != 0 || len(s) < untaggedSize { // it may have been bent already
			bendTagged(d, s, at)
		} else {
			bendUntagged(d, s)
		}
	}
	return talk{opening: opens(d, nil), messages: msgs, frame: octets.FPDU}
}

// bendTagged changes the STag, the TO, or the control field of a tagged segment (RFC 5041 section 4.2).
func bendTagged(d dice, s []byte, at Target) {
	switch d.IntN(4) {
	case 0:
		binary.BigEndian.PutUint32(s[2:], uint32(anySTag(d, at)))
	case 1:
		st, to := anyPlace(d, at)
		binary.BigEndian.PutUint32(s[2:], uint32(st))
		binary.BigEndian.PutUint64(s[6:], to)
	case 2:
		binary.BigEndian.PutUint64(s[6:], anyTO(d, at))
	default:
		s[0] = byte(d.Uint32())
	}
}

// bendUntagged changes the queue, the number, the offset, or the control field of an untagged segment (RFC
// 5041 section 4.3).
func bendUntagged(d dice, s []byte) {
	at := pick(d, 0, 2, 6, 10, 14)
	if at == 0 {
		s[0] = byte(d.Uint32())
		return
	}
	n := binary.BigEndian.Uint32(s[at:])
	binary.BigEndian.PutUint32(s[at:], pick(d, n+1, n-1, 0, 3, 4, 0x7fffffff, 0xffffffff, d.Uint32()))
}
