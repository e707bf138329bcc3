package sctpudp

import "time"

// A flight is what the peer has not acknowledged cumulatively: every such DATA chunk that
// was sent, in the order of the TSNs. pion counts differently: for pion a chunk that was
// received beyond a gap is acknowledged, although an earlier chunk is missing.
type flight struct {
	next   uint32    // the TSN of the next chunk
	since  time.Time // since when the peer could acknowledge the oldest chunk
	octets int       // of chunks
	chunks []sentChunk
}

type sentChunk struct {
	s      *stream // nil: the session that sent it has ended
	octets int
}

// sent records a chunk; a retransmitted chunk is not new.
func (f *flight) sent(tsn uint32, s *stream, octets int) (isNew bool) {
	if tsn != f.next {
		return false
	}
	if len(f.chunks) == 0 {
		f.since = time.Now()
	}
	f.chunks = append(f.chunks, sentChunk{s, octets})
	f.octets += octets
	f.next++
	return true
}

// acked removes the chunks up to tsn. It reports false if the peer cannot acknowledge tsn
// now: it has acknowledged more before, or tsn was never sent.
func (f *flight) acked(tsn uint32, each func(sentChunk)) (ok bool) {
	first := f.next - uint32(len(f.chunks))
	n := int(int32(tsn + 1 - first))
	if n < 0 || n > len(f.chunks) {
		return false
	}
	for _, c := range f.chunks[:n] {
		f.octets -= c.octets
		each(c)
	}
	clear(f.chunks[:n])
	if f.chunks = f.chunks[n:]; n > 0 {
		f.since = time.Now()
	}
	return true
}

// has reports whether a chunk was sent and is not acknowledged.
func (f *flight) has(tsn uint32) bool { return f.next-tsn-1 < uint32(len(f.chunks)) }

// waits returns how long the oldest chunk has waited to be acknowledged.
func (f *flight) waits() time.Duration {
	if len(f.chunks) == 0 {
		return 0
	}
	return time.Since(f.since)
}
