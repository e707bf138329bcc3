package mpa

import (
	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/freelist"
)

// The bounds of a batch: they limit how long others wait for it, and one gathered write
// must accept it. A message of 1 MiB must fit with all its headers and digests.
const (
	batchBytes  = 1<<20 + 16<<10
	batchPieces = 1000
	// digestBytes is the bound with a digest, for half of such a message: the peer
	// receives one half while this side computes the digests of the next.
	digestBytes = 544 << 10
)

const chunkSize = 64 << 10

// A chunk is memory for headers, digests and copied payload.
type chunk [chunkSize]byte

var (
	chunks  = freelist.List[chunk]{Retain: 2 * batchBytes / chunkSize, New: func() *chunk { return new(chunk) }}
	batches = freelist.List[batch]{Retain: 8, New: func() *batch { return new(batch) }}
)

// A batch holds the octets of FPDUs for one gathered write: pieces of its own chunks,
// alternating with lent payload. Adjoining octets of a chunk are one piece, so that the
// CRC of an FPDU and the header of the next are written
// together.
type batch struct {
	pieces [][]byte
	chunks []*chunk // the last one is being filled
	fill   int      // octets used of the last chunk
	grows  bool     // the last piece ends at fill: it can grow
	bytes  int      // all octets that were added
	sent   int      // pieces that were written, and dropped
	loans  []int    // indexes of the lent pieces, in rising order
	spare  [][]byte // of stage, to be used again
	emss   int      // of the stream; 0: not known
	edge   int      // the next beginning of a TCP segment that the batch has not reached, see splits
}

// fits reports whether an FPDU of this many octets and pieces still fits in a batch of
// at most limit octets. An empty batch accepts any FPDU.
func (b *batch) fits(bytes, pieces, limit int) bool {
	if b.bytes == 0 {
		return true
	}
	return b.bytes+bytes <= limit && len(b.pieces)-b.sent+pieces <= batchPieces
}

// splits reports whether a TCP segment would begin within the PAD and CRC of the FPDU of a ULPDU of n
// octets, if the FPDU came next. An empty batch accepts any FPDU.
//
// TCP begins a segment with the batch, and another after each EMSS. RFC 5044 allows an FPDU to begin and
// end anywhere, but Linux's siw computes a wrong CRC if the PAD and CRC of an FPDU arrive in two pieces.
func (b *batch) splits(n int) bool {
	end := b.bytes + wholeSize(n)
	if end <= b.edge || b.emss == 0 || b.bytes == 0 {
		return false
	}
	for b.edge <= b.bytes {
		b.edge += b.emss
	}
	edge := b.edge
	for edge <= b.bytes+lengthSize+n {
		edge += b.emss
	}
	return edge < end
}

// room returns how many octets own can add at once, at least 1.
func (b *batch) room() int {
	if len(b.chunks) == 0 || b.fill == chunkSize {
		b.chunks = append(b.chunks, chunks.Get())
		b.fill, b.grows = 0, false
	}
	return chunkSize - b.fill
}

// own adds n octets of the batch's own memory, at most room, and returns them to be filled.
func (b *batch) own(n int) []byte {
	p := b.chunks[len(b.chunks)-1][b.fill : b.fill+n]
	if b.grows {
		last := &b.pieces[len(b.pieces)-1]
		*last = (*last)[:len(*last)+n]
	} else {
		b.pieces = append(b.pieces, p)
		b.grows = true
	}
	b.fill += n
	b.bytes += n
	return p
}

// lend adds octets that still belong to the caller.
func (b *batch) lend(p []byte) {
	b.loans = append(b.loans, len(b.pieces))
	b.pieces = append(b.pieces, p)
	b.grows = false
	b.bytes += len(p)
}

// stage copies the lent pieces that are pending, so that all pending pieces are the batch's own.
func (b *batch) stage() {
	if len(b.loans) == 0 || b.loans[len(b.loans)-1] < b.sent {
		return
	}
	old, bytes := append(b.spare[:0], b.pending()...), b.bytes
	loans, first := b.loans, b.sent
	clear(b.pieces)
	b.pieces, b.sent, b.grows = b.pieces[:0], 0, false
	for i, p := range old {
		for len(loans) > 0 && loans[0] < first+i {
			loans = loans[1:]
		}
		if len(loans) > 0 && loans[0] == first+i {
			b.take(p)
			continue
		}
		b.pieces = append(b.pieces, p)
		b.grows = false
	}
	b.grows = false
	b.bytes = bytes
	clear(old)
	b.spare, b.loans = old[:0], b.loans[:0]
}

// take copies p into the batch's own memory.
func (b *batch) take(p []byte) {
	for len(p) > 0 {
		n := min(b.room(), len(p))
		blockcopy.Copy(b.own(n), p[:n])
		p = p[n:]
	}
}

// pending returns the pieces that were not written yet.
func (b *batch) pending() [][]byte { return b.pieces[b.sent:] }

// drop drops the first n pending octets.
func (b *batch) drop(n int) {
	for n > 0 {
		p := b.pieces[b.sent]
		if n < len(p) {
			b.pieces[b.sent] = p[n:]
			return
		}
		n -= len(p)
		b.pieces[b.sent] = nil
		b.sent++
	}
}

// release releases the batch and all its memory.
func (b *batch) release() {
	for i, c := range b.chunks {
		chunks.Put(c)
		b.chunks[i] = nil
	}
	clear(b.pieces[b.sent:])
	*b = batch{pieces: b.pieces[:0], chunks: b.chunks[:0], loans: b.loans[:0], spare: b.spare}
	batches.Put(b)
}
