package stream

import (
	"fmt"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A sender accounts for the octets to the peer.
type sender struct {
	ring   int
	queued uint64 // octets that the program has written, in all
	posted uint64 // of these, octets that were posted to the QP
	freed  uint64 // of these, octets that have left the QP
	base   uint64 // octets before the one at the start of the ring

	limit uint64 // messages of data that may be sent, in all
	sent  uint64 // messages of data that were sent

	slots [Slots]wire.Slot // what is left of each slot that was taken
	use   int              // the slot that is being filled
	next  int              // the slot that the peer writes next
}

func newSender(ring int, peer wire.Private) sender {
	return sender{
		ring:  ring,
		limit: uint64(peer.Credits),
		slots: [Slots]wire.Slot{peer.Half},
		next:  1,
	}
}

// room returns the first free part of the ring, as much of it as one message may carry.
func (s *sender) room() (off, n int) {
	off, n = s.space()
	return off, min(n, s.allowed())
}

// space returns the first free part of the ring. An empty ring is filled from its start, so that its end does not split one
// Write of the program into two messages.
func (s *sender) space() (off, n int) {
	if s.freed == s.queued {
		s.base = s.queued
	}
	off = s.at(s.queued)
	return off, min(s.ring-int(s.queued-s.freed), s.ring-off)
}

// at returns where in the ring an octet is.
func (s *sender) at(octet uint64) int { return int((octet - s.base) % uint64(s.ring)) }

// allowed returns how many octets the next message may carry: none without credits or a slot.
func (s *sender) allowed() int {
	if s.sent == s.limit {
		return 0
	}
	return min(maxWrite, int(s.slots[s.use].Length))
}

func (s *sender) drop() { s.queued = s.posted }

// raise takes the low bits of a new limit, and returns how many messages of data it acknowledges.
// entries is how many receives the peer has: its limit less the messages that it has read. A
// limit that decreases looks like one that is far ahead.
func (s *sender) raise(low uint16, entries uint64) (acked uint64, err error) {
	limit := s.limit + uint64(low-uint16(s.limit))
	if limit-entries > s.sent {
		return 0, fmt.Errorf("a limit of %d credits, behind %d, and with %d messages sent", low, uint16(s.limit), s.sent)
	}
	s.limit = limit
	return limit - entries, nil
}

// wantsSlot reports whether the next slot of the peer may be taken: the slot that it replaces is used up.
func (s *sender) wantsSlot() bool { return s.slots[s.next].Length == 0 }

// take copies the slot that the peer writes next, if the peer has written it.
func (s *sender) take(t Table) error {
	slot := t.Take(s.next)
	if slot.Length == 0 {
		return nil
	}
	if err := slot.Check(); err != nil {
		return err
	}
	s.slots[s.next] = slot
	s.next = (s.next + 1) % Slots
	return nil
}

// pending reports whether queued octets are not posted yet.
func (s *sender) pending() bool { return s.queued != s.posted }

// piece returns the octets of the next message: none without credits or a slot. Octets that are queued and not posted are contiguous in
// the ring: they are within the room in which they were queued.
func (s *sender) piece() (off, n int, to wire.Slot) {
	off = s.at(s.posted)
	return off, min(int(s.queued-s.posted), s.allowed()), s.slots[s.use]
}

// advance records that n octets are posted.
func (s *sender) advance(n int) {
	s.sent++
	s.posted += uint64(n)
	slot := &s.slots[s.use]
	slot.Addr += uint64(n)
	slot.Length -= uint32(n)
	if slot.Length == 0 {
		s.use = (s.use + 1) % Slots
	}
}
