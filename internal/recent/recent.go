// Package recent keeps the latest of many entries.
package recent

// A Log keeps the latest entries, up to the number passed to Add. The zero value is empty.
type Log[E any] struct {
	kept []E
	next int // the oldest, if it is full
}

// Add adds an entry. If the Log holds most entries, the new one replaces the oldest. most must be the
// same in every call.
func (l *Log[E]) Add(e E, most int) {
	if len(l.kept) < most {
		l.kept = append(l.kept, e)
		return
	}
	l.kept[l.next] = e
	l.next = (l.next + 1) % most
}

// List returns a copy of the entries, the oldest one first.
func (l *Log[E]) List() []E {
	return append(append([]E(nil), l.kept[l.next:]...), l.kept[:l.next]...)
}
