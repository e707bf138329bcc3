package rma

// moves is a queue of the moves of an Executor that wait to begin a chunk. Only the first is woken when there may be
// room: with many calls in progress, waking all of them for each operation would take longer than the operation.
type moves struct{ first, last *move }

// isNext reports whether no other move waits before m.
func (l *moves) isNext(m *move) bool { return l.first == nil || l.first == m }

// join appends m to the queue, unless it waits already.
func (l *moves) join(m *move) {
	if m.inLine {
		return
	}
	m.inLine, m.ahead, m.after = true, l.last, nil
	if l.last == nil {
		l.first = m
	} else {
		l.last.after = m
	}
	l.last = m
}

// leave removes m, if it waits, and wakes the new first move, which may find the room that m did not take.
func (l *moves) leave(m *move) {
	if !m.inLine {
		return
	}
	next := l.first == m
	if m.ahead == nil {
		l.first = m.after
	} else {
		m.ahead.after = m.after
	}
	if m.after == nil {
		l.last = m.ahead
	} else {
		m.after.ahead = m.ahead
	}
	m.inLine, m.ahead, m.after = false, nil, nil
	if next {
		l.wake()
	}
}

// wake wakes the first move.
func (l *moves) wake() {
	if l.first != nil {
		l.first.wake()
	}
}
