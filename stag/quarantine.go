package stag

// quarantineSize is how many freed indices are not handed out again: late segments of a
// peer that still uses a freed STag find no region for as long as possible (RFC 5042
// section 6.1.1: reuse "should" be slow).
const quarantineSize = 1 << 16

// quarantine is a ring of the most recently freed indices. It grows on use, up to
// its limit; then the oldest makes room for the newest.
type quarantine struct {
	limit int
	ring  []uint32
	next  int // the oldest, once the ring is full
	in    map[uint32]struct{}
}

func (q *quarantine) has(index uint32) bool {
	_, ok := q.in[index]
	return ok
}

// add adds an index that is not in the ring yet.
func (q *quarantine) add(index uint32) {
	if q.in == nil {
		q.in = make(map[uint32]struct{})
	}
	q.in[index] = struct{}{}
	if len(q.ring) < q.limit {
		q.ring = append(q.ring, index)
		return
	}
	delete(q.in, q.ring[q.next])
	q.ring[q.next] = index
	q.next = (q.next + 1) % q.limit
}
