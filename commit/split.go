package commit

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/goiwarp/iwarp/stag"
)

// A regionLike is a type with the fields of Region.
type regionLike interface {
	~struct {
		STag stag.STag
		TO   uint64
		Len  uint32
	}
}

// AppendRequest appends a Commit Request without a follow-on to b, and returns how many octets its
// regions have. A request has at least one region: if regions is empty, it has one empty region.
func AppendRequest[R regionLike](b []byte, id uint32, regions []R) (_ []byte, octets uint64) {
	b = binary.BigEndian.AppendUint32(b, id)
	for _, g := range regions {
		b = Region(g).Append(b)
		octets += uint64(Region(g).Len)
	}
	if len(regions) == 0 {
		b = Region{}.Append(b)
	}
	return b, octets
}

// Split yields the regions of as many Commits as n octets at to require. Each Commit has at most the
// given numbers of regions and octets; a number below 1 counts as 1.
func Split[R regionLike](st stag.STag, to, n uint64, regions int, octets uint64) iter.Seq[[]R] {
	regions, octets = max(regions, 1), max(octets, 1)
	return func(yield func([]R) bool) {
		for n > 0 {
			var list []R
			for room := min(n, octets); room > 0 && len(list) < regions; {
				g := Region{STag: st, TO: to, Len: uint32(min(room, math.MaxUint32))}
				list = append(list, R(g))
				room, to, n = room-uint64(g.Len), to+uint64(g.Len), n-uint64(g.Len)
			}
			if !yield(list) {
				return
			}
		}
	}
}
