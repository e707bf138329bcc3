package powercut

import (
	"bytes"
	"encoding/binary"
)

// A ledger is what the requester knows of one connection's area.
type ledger struct {
	stream int
	tailed bool // the Commits move the tail

	next  uint64        // the record to be written next; the first is 1
	slots [slots]uint64 // the record that must be there; 0: none for certain
	tail  uint64        // of the last answered Commit

	acknowledged, lost int
}

func newLedger(stream int) *ledger {
	return &ledger{stream: stream, tailed: stream%2 == 0, next: 1}
}

// begin is a record that is about to be written: what was in its slot is gone.
func (l *ledger) begin() (n uint64) {
	n = l.next
	l.next++
	l.slots[n%slots] = 0
	return n
}

// acknowledge is the answer to the Commit of record n.
func (l *ledger) acknowledge(n uint64) {
	l.acknowledged++
	l.slots[n%slots] = n
	if l.tailed {
		l.tail = n
	}
}

// check compares what is there after a cut with what must be. A record counts as lost
// once.
func (l *ledger) check(area []byte) {
	if l.tailed {
		l.checkTail(binary.LittleEndian.Uint64(area))
	}
	p := make([]byte, slotLen)
	for i, n := range l.slots {
		if n == 0 {
			continue
		}
		want := record(p, l.stream, n)
		if !bytes.HasPrefix(area[slotOf(n):], want) {
			l.lost++
			l.slots[i] = 0
		}
	}
}

// checkTail: a tail vouches for the records up to it, whether the requester has heard
// of that or not.
func (l *ledger) checkTail(tail uint64) {
	if tail < l.tail || tail >= l.next {
		l.lost++
		l.tail = 0 // it counts once
		return
	}
	for n := max(l.tail+1, tail-min(tail, slots-1)); n <= tail; n++ {
		l.slots[n%slots] = n
	}
	l.tail = tail
}

// forget counts everything as lost: the file is gone.
func (l *ledger) forget() {
	for i, n := range l.slots {
		if n != 0 {
			l.lost++
			l.slots[i] = 0
		}
	}
	l.tail = 0
}
