package mpa

import (
	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/freelist"
)

// The sizes of stashes: to park with while little comes, and that may be a block of 4 KiB with
// its headers and a few messages behind it; to park with a part of any FPDU (at most
// 66,064 octets with its Markers); and to read a lot at a time.
const (
	smallStash  = 4<<10 + 768
	mediumStash = 72 << 10
	largeStash  = 512 << 10
)

// A stashClass is one size of stash and the idle ones, shared by all connections.
type stashClass = freelist.List[[]byte]

func newStashClass(size, keep int) *stashClass {
	return &stashClass{Keep: keep, New: func() *[]byte {
		b := make([]byte, size)
		return &b
	}}
}

var small, medium, large = newStashClass(smallStash, 16), newStashClass(mediumStash, 8), newStashClass(largeStash, 4)

// A stash holds received octets that are not delivered yet, in memory that is
// borrowed only while there is something to hold or to read.
type stash struct {
	class *stashClass // nil: no memory
	box   *[]byte
	r, w  int // the octets held: (*box)[r:w]
}

// octets are the octets held. They move with hold, free and shrink.
func (s *stash) octets() []byte {
	if s.class == nil {
		return nil
	}
	return (*s.box)[s.r:s.w]
}

// hold sees to memory of class k, which must be large enough for what is held.
func (s *stash) hold(k *stashClass) {
	if s.class == k {
		return
	}
	box := k.Get()
	n := copy(*box, s.octets())
	s.release()
	*s = stash{class: k, box: box, w: n}
}

// free is where more octets go: at least half of the stash, or all that the
// octets held leave. Tell filled how many came.
func (s *stash) free() []byte {
	b := *s.box
	if s.r > 0 && len(b)-s.w < len(b)/2 {
		s.w = copy(b, b[s.r:s.w])
		s.r = 0
	}
	return b[s.w:]
}

func (s *stash) filled(n int) { s.w += n }

// full reports whether there is no room behind the octets held, so that more may have come.
func (s *stash) full() bool { return s.w == len(*s.box) }

// prepend puts the n octets of vec from octet at on in front of what is held.
func (s *stash) prepend(vec [][]byte, at, n int) {
	b := *s.box
	s.w = n + copy(b[n:], b[s.r:s.w])
	s.r = 0
	for i, to := 0, 0; to < n; i++ {
		if at >= len(vec[i]) {
			at -= len(vec[i])
			continue
		}
		to += blockcopy.Copy(b[to:n], vec[i][at:])
		at = 0
	}
}

// drop forgets the first n octets.
func (s *stash) drop(n int) {
	s.r += n
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
}

// shrink leaves no more memory than the octets held need.
func (s *stash) shrink() {
	switch n := s.w - s.r; {
	case n == 0:
		s.release()
	case n <= smallStash/2:
		s.hold(small)
	case n <= mediumStash:
		s.hold(medium)
	}
}

// release gives the memory back, and forgets what it held.
func (s *stash) release() {
	if s.class != nil {
		s.class.Put(s.box)
	}
	*s = stash{}
}
