package ddp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// ErrTooLong is returned for a message of more than 2^32-1 octets (RFC 5041
// section 5.2).
var ErrTooLong = errors.New("ddp: message longer than 2^32-1 octets")

// A Sender cuts the messages of one stream into segments. The zero value is ready to use.
// Only the goroutine that has the sending half of the LLP may use it.
type Sender struct {
	head    [UntaggedLen]byte
	payload [][]byte
	queues  []sendQueue
	lent    []*[]byte // chunks to which the batch of the LLP refers
}

type sendQueue struct {
	qn   QN
	next MSN
}

// NextMSN returns the number for the next message to qn, starting with 1, and
// counts it. The messages must be emitted in that order.
func (s *Sender) NextMSN(qn QN) MSN {
	q := s.queue(qn)
	msn := q.next
	q.next = msn.Next()
	return msn
}

func (s *Sender) queue(qn QN) *sendQueue {
	for i := range s.queues {
		if q := &s.queues[i]; q.qn == qn {
			return q
		}
	}
	s.queues = append(s.queues, sendQueue{qn, firstMSN})
	return &s.queues[len(s.queues)-1]
}

// Emit appends segments of m to llp's batch, in rising order of their offsets. It
// reports true when the message's last segment is in the batch, and false when the
// batch is full: flush, then call again. Messages must not be interleaved.
//
// The batch refers to the memory of the source. It is copied at once if m.Stage is set, and
// also if the peer may write to it while llp protects segments by a digest: a change after
// the digest was computed would look like corruption to the peer. A [stag.Buffer] is read
// here, into memory of the Sender, which Release reclaims, unless it is a [stag.MemoryBuffer].
//
// Emit does not check or pin the regions of m.Source: the caller holds them. An
// error says that the message cannot be sent ([ErrTooLong], at the start) or that
// its source could not be read; what was emitted ends at a segment boundary, so an
// error message can follow.
func (s *Sender) Emit(llp transport.LLP, m *Message) (done bool, err error) {
	total := stag.TotalLen(m.Source)
	if total > math.MaxUint32 {
		return false, ErrTooLong
	}
	room := llp.MaxULPDU() - headerLen(m.Tagged)
	if room <= 0 {
		return false, fmt.Errorf("ddp: segments of %d octets leave no room for payload", llp.MaxULPDU())
	}
	stage := m.Stage || (m.shared() && llp.Caps().Digest)
	m.slow = m.mayBeSlow()
	for {
		n := min(total-m.sent, uint64(room))
		last := m.sent+n == total
		ok, err := s.emitOne(llp, m, int(n), last, stage)
		if err != nil || !ok {
			return false, err
		}
		m.sent += n
		if last {
			return true, nil
		}
	}
}

// Send emits all of m and flushes. It waits for the network, and so is for an upper layer
// that has a goroutine for waiting. When it has returned nil the source belongs to the
// caller again. Errors are those of Emit and of the LLP.
func (s *Sender) Send(llp transport.LLP, m *Message) error {
	for {
		done, err := s.Emit(llp, m)
		if flushErr := llp.Flush(true); err == nil {
			err = flushErr
		}
		s.Release()
		if done || err != nil {
			return err
		}
	}
}

// emitOne appends the next segment, with n octets of payload. It reports false if the batch is full.
func (s *Sender) emitOne(llp transport.LLP, m *Message, n int, last, stage bool) (bool, error) {
	payload, ok := stag.Gather(s.payload[:0], m.Source, m.sent, n)
	if !ok {
		return s.emitBuffer(llp, m, n, last)
	}
	if m.slow {
		prefault(llp, payload)
	}
	ok = llp.Append(m.header(s.head[:0], last), payload, stage)
	for i := len(payload) - 1; i >= 0; i-- { // do not keep the caller's memory alive
		payload[i] = nil
	}
	s.payload = payload[:0]
	return ok, nil
}

// prefault makes llp load payload into memory, if llp can do that.
func prefault(llp transport.LLP, payload [][]byte) {
	if p, ok := llp.(transport.Prefaulter); ok {
		p.Prefault(payload)
	}
}

// chunks are pieces of private memory for reading a segment's payload into. A batch of
// 1 MiB refers to some 16 of them.
var chunks = freelist.List[[]byte]{Retain: 32, New: func() *[]byte { return new([]byte) }}

// chunkLent is the size from which the batch refers to a chunk. Copying fewer octets while they
// are in the cache costs less than a chunk that is occupied until the flush.
const chunkLent = 16 << 10

// emitBuffer is emitOne for a payload that is not all in memory. The payload of a [stag.MemoryBuffer] is copied to the batch.
func (s *Sender) emitBuffer(llp transport.LLP, m *Message, n int, last bool) (ok bool, err error) {
	src, err := stag.AcquireAt(m.Source, m.sent, n)
	switch {
	case err != nil:
		return false, readError(m, err)
	case src.Mem == nil:
		return s.emitRead(llp, m, n, last)
	}
	s.payload = append(s.payload[:0], src.Mem)
	ok = llp.Append(m.header(s.head[:0], last), s.payload, true)
	clear(s.payload)
	if err := src.Release(); err != nil {
		return false, readError(m, err)
	}
	return ok, nil
}

func readError(m *Message, err error) error {
	return fmt.Errorf("ddp: reading the payload at octet %d: %w", m.sent, err)
}

// emitRead is emitBuffer for octets that must be read. If the batch turns out to be full
// the octets are read again next time.
func (s *Sender) emitRead(llp transport.LLP, m *Message, n int, last bool) (ok bool, err error) {
	chunk := chunks.Get()
	stage := n < chunkLent
	defer func() {
		if ok && !stage {
			s.lent = append(s.lent, chunk)
		} else {
			chunks.Put(chunk)
		}
	}()
	*chunk = slices.Grow((*chunk)[:0], n)
	p := (*chunk)[:n]
	if err := stag.ReadAt(m.Source, p, m.sent); err != nil {
		return false, readError(m, err)
	}
	s.payload = append(s.payload[:0], p)
	ok = llp.Append(m.header(s.head[:0], last), s.payload, stage)
	clear(s.payload)
	return ok, nil
}

// Release reclaims the memory into which Emit has read Buffers. The batch of the LLP must no longer
// refer to it: it was flushed, or what it referred to was copied (LLP.Stage).
func (s *Sender) Release() {
	for i, chunk := range s.lent {
		chunks.Put(chunk)
		s.lent[i] = nil
	}
	s.lent = s.lent[:0]
}
