package attack

import (
	"math"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
	"github.com/goiwarp/iwarp/stag"
)

// segments returns valid segments that a peer may send: Writes to the region of the Target, Sends, and RDMA Reads.
func segments(d dice, at Target, n int) [][]byte {
	var all [][]byte
	sends, reads := uint32(0), uint32(0)
	for range n {
		switch k := d.IntN(4); {
		case k <= 1 && at.Len > 0:
			size := d.IntN(int(min(at.Len, 1024)))
			to := at.TO + uint64(d.IntN(int(at.Len)-size+1))
			all = append(all, octets.Write(at.STag, to, string(d.octets(size))))
		case k == 2 && at.Len > 0 && reads < 16:
			reads++
			size := d.Uint32N(at.Len + 1)
			all = append(all, octets.ReadRequest(reads, stag.STag(d.Uint32()), d.Uint64(), size, at.STag, at.TO))
		default:
			sends++
			all = append(all, octets.Send(sends, 0, string(d.octets(d.IntN(64)))))
		}
	}
	return all
}

// anyPlace returns an STag and a TO: of a region that the attacker must not use, or any.
func anyPlace(d dice, at Target) (stag.STag, uint64) {
	if len(at.Else) > 0 && d.one(3) {
		return pick(d, at.Else...), d.Uint64N(64)
	}
	return anySTag(d, at), anyTO(d, at)
}

// anySTag returns an STag that exists, or is close to one, or any.
func anySTag(d dice, at Target) stag.STag {
	s := at.STag
	if len(at.Else) > 0 && d.one(2) {
		s = pick(d, at.Else...)
	}
	switch d.IntN(6) {
	case 0:
		return s ^ stag.STag(1<<d.IntN(32))
	case 1:
		return s + stag.STag(d.IntN(512)) - 256
	case 2:
		return stag.STag(d.Uint32())
	case 3:
		return pick[stag.STag](d, 0, 1, math.MaxUint32)
	}
	return s
}

// anyTO returns a TO at an edge of the region that the attacker knows, or of the address space, or any.
func anyTO(d dice, at Target) uint64 {
	end := at.TO + uint64(at.Len)
	return pick(d, at.TO, at.TO-1, end, end-1, end+1, 0, math.MaxUint64, math.MaxUint64-7, 1<<63, 1<<32, d.Uint64())
}
