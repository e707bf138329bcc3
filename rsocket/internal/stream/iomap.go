package stream

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// An iomap holds the entries of the peer's memory to which this side may write by offset, without messages, and the entries of
// this side's own memory that the peer is still to be told of.
type iomap struct {
	there []wire.Entry // of the peer; entries of length 0 are not known yet
	told  int          // entries that the peer knows, or will know
	most  int          // entries that the peer has room for
	tell  []wire.Entry // the last of the told entries, which have not been posted
}

func newIOMap(cfg Config, peer wire.Private) iomap {
	return iomap{there: make([]wire.Entry, cfg.IOMap), most: wire.Entries(peer.IOMap)}
}

// Map queues an entry for the peer, behind what is queued. It reports false if the peer has no room for more.
func (s *Stream) Map(e wire.Entry) bool {
	m := &s.maps
	if m.told == m.most {
		return false
	}
	m.told++
	m.tell = append(m.tell, e)
	return true
}

// nextEntry returns the Work that tells the peer of an entry. The message takes a credit.
func (s *Stream) nextEntry() (Work, bool) {
	m := &s.maps
	if len(m.tell) == 0 || s.out.pending() || s.posts.controls >= maxControls || s.out.sent == s.out.limit || !s.polls.mayData() {
		return Work{}, false
	}
	i := m.told - len(m.tell)
	w := Work{
		Message: wire.NewMessage(wire.OpIOMapSGL, uint32(i)),
		Writes:  OneEntry, Entry: m.tell[0],
		Addr: s.table.Addr + wire.SlotSize*uint64(s.table.Slots) + wire.EntrySize*uint64(i), Key: s.table.Key,
	}
	m.tell = m.tell[1:]
	s.out.sent++
	s.polls.sent++
	s.posts.control()
	w.Quiet = s.quiet()
	return w, true
}

// entry takes an entry of the peer, whose message takes a credit.
func (s *Stream) entry(i uint32, t Table) error {
	if s.life.heard != hearOpen {
		return errors.New("an entry of an iomap after SHUTDOWN")
	}
	if i >= uint32(len(s.maps.there)) {
		return fmt.Errorf("entry %d of an iomap that has %d", i, len(s.maps.there))
	}
	e := t.Entry(int(i))
	if err := e.Check(); err != nil {
		return err
	}
	if err := s.in.mayArrive(); err != nil {
		return err
	}
	s.maps.there[i] = e
	s.in.add(0)
	return nil
}

// Mapped returns where the peer has mapped the octets from an offset on, and how many of them are contiguous. ok is false if
// the peer has mapped none.
func (s *Stream) Mapped(offset uint64) (at wire.Slot, ok bool) {
	for _, e := range s.maps.there {
		if in := offset - e.Offset; offset >= e.Offset && in < uint64(e.Length) {
			return wire.Slot{Addr: e.Addr + in, Key: e.Key, Length: e.Length - uint32(in)}, true
		}
	}
	return wire.Slot{}, false
}

// RingSpace is like Room, for octets that are written by offset, which need no credits of the peer.
func (s *Stream) RingSpace() (off, n int) {
	if s.out.pending() || s.posts.full() {
		return 0, 0
	}
	off, n = s.out.space()
	return off, min(n, maxWrite)
}

// WriteMapped returns the Work that writes the first n octets of RingSpace, and takes them as posted.
func (s *Stream) WriteMapped(to wire.Slot, n int) Work {
	w := Work{Writes: Mapped, Addr: to.Addr, Key: to.Key, Off: s.out.at(s.out.posted), N: n}
	s.out.queued += uint64(n)
	s.out.posted += uint64(n)
	s.posts.data(n)
	w.Quiet = s.quiet()
	return w
}
