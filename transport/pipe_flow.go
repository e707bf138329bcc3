package transport

import "time"

// flow is one direction of a pipe: a ring of octets, and the times at which they may be
// read. The pipe's mutex guards it.
type flow struct {
	ring  []byte // grows up to the pipe's limit
	start int    // index of the first octet
	n     int    // octets in the ring

	marks []mark // times of arrival; empty without latency
	ended bool   // no more data will be written
	endAt time.Time

	timer *time.Timer
}

// A mark is the time at which the next n octets arrive.
type mark struct {
	n  int
	at time.Time
}

// forever is the duration of a wait that only a change of the pipe ends.
const forever = time.Duration(1<<63 - 1)

// read reads octets that have arrived. If there are none, it returns how long to wait
// for some, or 0 at the end of the stream.
func (f *flow) read(b []byte) (n int, wait time.Duration) {
	arrived, wait := f.arrived()
	if n = min(len(b), arrived); n == 0 {
		return 0, wait
	}
	m := copy(b[:n], f.ring[f.start:])
	copy(b[m:n], f.ring)
	f.start = (f.start + n) % len(f.ring)
	f.n -= n
	f.unmark(n)
	return n, 0
}

// arrived returns how many octets may be read now. If there are none, wait is the time
// until the next octets arrive.
func (f *flow) arrived() (n int, wait time.Duration) {
	if f.n == 0 {
		if !f.ended {
			return 0, forever
		}
		return 0, untilArrival(f.endAt)
	}
	if len(f.marks) == 0 {
		return f.n, 0
	}
	for _, m := range f.marks {
		if wait = untilArrival(m.at); wait > 0 {
			break
		}
		n += m.n
	}
	return n, wait
}

func untilArrival(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Until(t))
}

// unmark drops the marks of n octets that were read.
func (f *flow) unmark(n int) {
	if len(f.marks) == 0 {
		return
	}
	i := 0
	for n > 0 && n >= f.marks[i].n {
		n -= f.marks[i].n
		i++
	}
	f.marks = append(f.marks[:0], f.marks[i:]...)
	if n > 0 {
		f.marks[0].n -= n
	}
}

// write appends as many octets as fit, and returns how many.
func (f *flow) write(b []byte, limit int, latency time.Duration) int {
	n := min(len(b), limit-f.n)
	if n <= 0 {
		return 0
	}
	f.grow(f.n+n, limit)
	end := (f.start + f.n) % len(f.ring)
	m := copy(f.ring[end:], b[:n])
	copy(f.ring, b[m:n])
	f.n += n
	if latency > 0 {
		f.marks = append(f.marks, mark{n, time.Now().Add(latency)})
	}
	return n
}

// grow makes the ring large enough for need octets.
func (f *flow) grow(need, limit int) {
	if need <= len(f.ring) {
		return
	}
	ring := make([]byte, min(max(need, 2*len(f.ring), 512), limit))
	if f.n > 0 {
		m := copy(ring[:f.n], f.ring[f.start:])
		copy(ring[m:f.n], f.ring)
	}
	f.ring, f.start = ring, 0
}

// end marks the end of the stream, once.
func (f *flow) end(latency time.Duration) {
	if f.ended {
		return
	}
	f.ended = true
	if latency > 0 {
		f.endAt = time.Now().Add(latency)
	}
}

// drop discards all octets.
func (f *flow) drop() {
	if f.timer != nil {
		f.timer.Stop()
	}
	*f = flow{ended: f.ended, endAt: f.endAt}
}

// wakeAfter wakes all goroutines that wait in p after d.
func (f *flow) wakeAfter(d time.Duration, p *pipe) {
	switch {
	case d == forever:
	case f.timer == nil:
		f.timer = time.AfterFunc(d, p.wakeAll)
	default:
		f.timer.Reset(d)
	}
}

func (p *pipe) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}
