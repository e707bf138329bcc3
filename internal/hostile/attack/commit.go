package attack

import (
	"encoding/binary"
	"math"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
)

// commits sends Commit Requests among Writes: of few or many regions, with or without a follow-on.
func commits(d dice, at Target) talk {
	r := &messages{dice: d, at: at}
	t := talk{opening: opens(d, nil), frame: octets.FPDU}
	for range 1 + d.IntN(20) {
		switch {
		case d.one(5):
			t.messages = append(t.messages, octets.Write(at.STag, at.TO, string(d.octets(d.IntN(int(min(at.Len, 256))+1)))))
		case d.one(8): // a response without a request
			t.messages = append(t.messages, r.untagged(0xd, 0, 3, d.octets(8)))
		default:
			t.messages = append(t.messages, r.untagged(0xc, 0, 1, r.commit()))
		}
	}
	return t
}

// commit returns a Commit Request (draft-talpey-rdma-commit-00 section 3.2.1).
func (r *messages) commit() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.Uint32())
	for range pick(r.dice, 0, 1, 1, 1, 2, 4, 64, 65) {
		s, to, n := r.at.STag, r.at.TO, r.at.Len
		if r.one(3) {
			s, to = anySTag(r.dice, r.at), anyTO(r.dice, r.at)
			n = pick(r.dice, 0, 1, n, n+1, math.MaxUint32)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(s))
		b = binary.BigEndian.AppendUint32(b, n)
		b = binary.BigEndian.AppendUint64(b, to)
	}
	if r.one(3) { // a follow-on
		b = binary.BigEndian.AppendUint32(b, uint32(anySTag(r.dice, r.at)))
		b = binary.BigEndian.AppendUint64(b, pick(r.dice, r.at.TO, r.at.TO+1, anyTO(r.dice, r.at)))
		b = append(b, r.octets(8)...)
	}
	return b
}
