package powercut

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A ledger is what the requester knows of one connection's area.
type ledger struct {
	stream int
	tailed bool // the Commits move the tail

	next  uint64        // the record to be written next; the first is 1
	slots [slots]uint64 // the record that must be there; 0: none for certain
	tail  uint64        // of the last answered Commit
	born  uint64        // the first record of this life of the target

	acknowledged, lost int
	news               []string // what was lost, in words, since the last report
}

func newLedger(stream int) *ledger {
	return &ledger{stream: stream, tailed: stream%2 == 0, next: 1, born: 1}
}

// begin returns a record that is about to be written; the previous contents of its slot no longer count.
func (l *ledger) begin() (n uint64) {
	n = l.next
	l.next++
	l.slots[n%slots] = 0
	return n
}

// acknowledge records the answer to the Commit of record n.
func (l *ledger) acknowledge(n uint64) {
	l.acknowledged++
	l.slots[n%slots] = n
	if l.tailed {
		l.tail = n
	}
}

// lose counts a loss.
func (l *ledger) lose(format string, args ...any) {
	l.lost++
	l.news = append(l.news, fmt.Sprintf("connection %d: ", l.stream)+fmt.Sprintf(format, args...))
}

// check compares the contents after a cut with the required ones, and begins the target's
// next life. The loss of a record is counted once.
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
			l.lose("record %d is not whole; the tail is %d, this life's first record %d", n, l.tail, l.born)
			l.slots[i] = 0
		}
	}
	l.born = l.next
}

// checkTail checks the records up to a tail, which guarantees them whether or not the requester
// was told; but it does not guarantee records that were outstanding when an earlier life ended,
// and were never written again.
func (l *ledger) checkTail(tail uint64) {
	if tail < l.tail || tail >= l.next {
		l.lose("the tail is %d, and not from %d to %d", tail, l.tail, l.next-1)
		l.tail = 0 // the loss is counted once
		return
	}
	for n := max(l.tail+1, l.born, tail-min(tail, slots-1)); n <= tail; n++ {
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
	l.born = l.next
	l.tail = 0
}
