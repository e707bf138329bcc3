package op

// none stands for no slot, or no record.
const none = -1

// A waitList is an ordered list of slots.
type waitList struct{ head, tail int32 }

func (l *waitList) push(slots []slot, n int32) {
	s := &slots[n]
	s.prev, s.next = l.tail, none
	if l.tail == none {
		l.head = n
	} else {
		slots[l.tail].next = n
	}
	l.tail = n
}

func (l *waitList) remove(slots []slot, n int32) {
	s := &slots[n]
	if s.prev == none {
		l.head = s.next
	} else {
		slots[s.prev].next = s.next
	}
	if s.next == none {
		l.tail = s.prev
	} else {
		slots[s.next].prev = s.prev
	}
}
