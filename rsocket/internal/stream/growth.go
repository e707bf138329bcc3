package stream

import (
	"time"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A growth finds out whether the halves are too small. They are if the program has read both halves, has told the peer so, and then
// waits long, compared with the time that a half takes, until the peer begins to fill them again: the peer had no room meanwhile.
//
//	half A read, told         half B read, told       A comes again
//	--------+------------------------+.......................+------->
//	        |<-- took: half B ------>|<-- wait: for half A ->|
//
// If the program reads slowly, or the peer sends little, the program hardly ever waits exactly there. If it does because the peer
// sends as much as a half at a time, the halves stop growing as soon as they have room for several times that amount.
type growth struct {
	last  time.Duration // when a half became free
	told  uint64        // octets that were told then
	took  time.Duration // since the half before became free
	small bool          // the next half is to be larger
}

// Free returns the half that is told next and whether it should be larger; small is false if no half may be told. now is the time
// since an arbitrary moment.
func (s *Stream) Free(now time.Duration) (half int, small bool) {
	r, g := &s.in, &s.in.growth
	if g.told == r.told || !r.freeHalf(s.table.Slots) {
		return 0, false
	}
	g.last, g.took, g.told = now, now-g.last, r.told
	small, g.small = g.small, false
	return r.next, small
}

// Larger sets where the half that is told next is from now on.
func (s *Stream) Larger(at wire.Slot) { s.in.halves[s.in.next].Slot = at }

// Drained reports whether everything that has come was read, and was as much as the halves had room for.
func (s *Stream) Drained() bool {
	h := s.in.filling()
	return h >= 0 && s.in.read > 0 && s.in.read == s.in.halves[h].end-s.in.halves[h].size()
}

// Came records that octets have come after Drained was true.
func (s *Stream) Came(now time.Duration) {
	if g := &s.in.growth; 2*(now-g.last) > g.took {
		g.small = true
	}
}
