package recordpipe

import (
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// queue is what is on its way to one end, in the sender's order. The pipe's
// mutex guards it.
type queue struct {
	records []*record
	octets  int // flushed by the peer and not yet taken
	spare   []*record
	rnd     *rand.Rand
	ended   bool // no more will come
	endAt   time.Time
	timer   *time.Timer
}

type record struct {
	seq  uint64
	at   time.Time // when it arrives; zero: at once
	data []byte
}

// push puts in a segment. What it copies into is a record that was taken before, so
// that nothing is allocated in steady state.
func (q *queue) push(seq uint64, size int, s *outSegment, latency time.Duration) {
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
	if latency > 0 {
		r.at = time.Now().Add(latency)
	}
	q.octets += size
	q.records = append(q.records, r)
}

// pop takes out one record that has arrived: the first, or one within the window
// after it. If there is none it returns how long to wait, 0 at the end of the
// stream.
func (q *queue) pop(window int) (r *record, wait time.Duration) {
	if wait = q.nextArrival(); wait > 0 || len(q.records) == 0 {
		return nil, wait
	}
	i := 0
	if n := q.candidates(q.records[0].seq + uint64(window)); n > 1 {
		i = q.rnd.IntN(n)
	}
	r = q.records[i]
	q.records = append(q.records[:i], q.records[i+1:]...)
	return r, 0
}

// nextArrival is how long it is until the first record arrives, or the end.
func (q *queue) nextArrival() time.Duration {
	switch {
	case len(q.records) > 0:
		return untilArrival(q.records[0].at)
	case q.ended:
		return untilArrival(q.endAt)
	}
	return forever
}

// candidates counts the records that have arrived with a number below limit.
func (q *queue) candidates(limit uint64) int {
	for i, r := range q.records {
		if r.seq >= limit || untilArrival(r.at) > 0 {
			return i
		}
	}
	return len(q.records)
}

// done gives back a record that was taken. Only as many are kept as fit the limit
// on what is in flight, because each was counted there.
func (q *queue) done(r *record) {
	q.octets -= len(r.data)
	q.spare = append(q.spare, r)
}

// forever is a wait that only a change of the pipe ends.
const forever = time.Duration(1<<63 - 1)

func untilArrival(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Until(t))
}

// end marks the end of the stream, once.
func (q *queue) end(latency time.Duration) {
	if q.ended {
		return
	}
	q.ended = true
	if latency > 0 {
		q.endAt = time.Now().Add(latency)
	}
}

// drop forgets all records.
func (q *queue) drop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	q.records, q.spare, q.octets = nil, nil, 0
}

// wakeAfter makes all goroutines that are parked in p look again after a while.
func (q *queue) wakeAfter(d time.Duration, p *pipe) {
	switch {
	case d == forever:
	case q.timer == nil:
		q.timer = time.AfterFunc(d, p.wakeAll)
	default:
		q.timer.Reset(d)
	}
}

func (p *pipe) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}
