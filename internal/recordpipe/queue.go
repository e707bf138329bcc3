package recordpipe

import (
	"math/rand/v2"
	"slices"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// queue holds the segments on their way to one end, in the sender's order. The
// pipe's mutex guards it.
type queue struct {
	records []*record
	octets  int // flushed by the peer and not yet taken
	spare   []*record
	rnd     *rand.Rand
	ended   bool // no more segments will come
}

type record struct {
	seq  uint64
	data []byte
}

// push adds a segment. It copies the segment into a record that was taken before, so
// that nothing is allocated in steady state.
func (q *queue) push(seq uint64, size int, s *outSegment) {
	var r *record
	if n := len(q.spare); n > 0 {
		r, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		r = new(record)
	}
	r.seq = seq
	r.data = append(r.data[:0], s.own...)
	raceorder.Lock() // the payload may be what another peer writes
	for _, b := range s.payload {
		r.data = append(r.data, b...)
	}
	raceorder.Unlock()
	q.octets += size
	q.records = append(q.records, r)
}

// pop removes one record and returns it: the first, or one within the window after it. It returns
// nil if there is none.
func (q *queue) pop(window int) *record {
	if len(q.records) == 0 {
		return nil
	}
	i, n, limit := 0, 1, q.records[0].seq+uint64(window)
	for n < len(q.records) && q.records[n].seq < limit {
		n++
	}
	if n > 1 {
		i = q.rnd.IntN(n)
	}
	r := q.records[i]
	q.records = slices.Delete(q.records, i, i+1)
	return r
}

// done gives back a record that was taken. The limit on octets in flight bounds the
// number of records that are kept, because each was counted there.
func (q *queue) done(r *record) {
	q.octets -= len(r.data)
	q.spare = append(q.spare, r)
}

// drop forgets all records.
func (q *queue) drop() { q.records, q.spare, q.octets = nil, nil, 0 }
