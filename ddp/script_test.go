package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// What the receiving tests talk to: a conversation with a scripted peer, upper layer
// and queues. Every check starts with the expectation in English.

var (
	alice = stag.Scope{PD: 1, Stream: 10} // the stream under test
	bob   = stag.Scope{PD: 1, Stream: 11} // another of the same PD
	carol = stag.Scope{PD: 2, Stream: 20} // one of another PD
)

// A conversation is one Stream and its surroundings.
type conversation struct {
	*testing.T
	table *stag.Table
	s     *Stream
	seq   uint64 // of the next segment sent in order

	access     stag.Access // what the upper layer answers
	refuse     error       // what it answers instead
	refuseLast error       // what it answers to deliveries
	asked      int         // how often it was asked
	delivered  []string    // what was delivered, in order
	queues     map[QN]*scriptQueue
}

func converse(t *testing.T, window int) *conversation {
	c := &conversation{T: t, table: stag.NewTable(), access: stag.RemoteWrite, queues: map[QN]*scriptQueue{}}
	c.s = New(Config{Table: c.table, Scope: alice, Upper: c, Window: window})
	return c
}

func (c *conversation) Tagged(TaggedHeader, int) (stag.Access, error) {
	c.asked++
	return c.access, c.refuse
}

func (c *conversation) Untagged(UntaggedHeader, int) error {
	c.asked++
	return c.refuse
}

func (c *conversation) PlacedTagged(TaggedHeader, int) error { return nil }

func (c *conversation) PredictTagged(int) (h TaggedHeader, access stag.Access, n uint64, ok bool) {
	return h, 0, 0, false
}

func (c *conversation) DeliverTagged(h TaggedHeader) error {
	if c.refuseLast != nil {
		return c.refuseLast
	}
	c.delivered = append(c.delivered, fmt.Sprintf("tagged stag=%v ulp=%02x", h.STag, h.RsvdULP))
	return nil
}

// region registers n octets from TO 0x1000 on, with every remote right unless told.
func (c *conversation) region(n int, change func(*stag.Options)) (*stag.Region, []byte) {
	c.Helper()
	mem := make([]byte, n)
	o := stag.Options{Access: stag.LocalWrite | stag.Remote, BaseTO: 0x1000, Scope: stag.Scope{PD: 1}}
	if change != nil {
		change(&o)
	}
	r, err := c.table.Register(mem, o)
	require.NoError(c, err, "registering works")
	return r, mem
}

// A scriptQueue is a Queue of plain memory.
type scriptQueue struct {
	NoBatch
	c       *conversation
	bufs    [][]stag.Span
	missing error
	refuse  error
	asked   int // how often Missing was
}

// post binds qn if need be and posts a buffer made of pieces.
func (c *conversation) post(qn QN, pieces ...[]byte) {
	q := c.bind(qn)
	var spans []stag.Span
	for _, p := range pieces {
		spans = append(spans, stag.Span{Mem: p, Len: len(p)})
	}
	q.bufs = append(q.bufs, spans)
}

func (c *conversation) bind(qn QN) *scriptQueue {
	q := c.queues[qn]
	if q == nil {
		q = &scriptQueue{c: c}
		c.queues[qn] = q
		c.s.Bind(qn, q)
	}
	return q
}

func (q *scriptQueue) Posted() int { return len(q.bufs) }

func (q *scriptQueue) Buffer(k int, _ *UntaggedHeader) []stag.Span {
	return q.bufs[k]
}

func (q *scriptQueue) Missing() error {
	q.asked++
	return q.missing
}

func (q *scriptQueue) Deliver(h UntaggedHeader, n uint32) error {
	if q.refuse != nil {
		return q.refuse
	}
	q.bufs = q.bufs[1:]
	q.c.delivered = append(q.c.delivered,
		fmt.Sprintf("qn=%d msn=%d len=%d ulp=%02x/%08x", h.QN, h.MSN, n, h.RsvdULP, h.RsvdULPWord))
	return nil
}

// send hands up a segment in order.
func (c *conversation) send(segment []byte) error {
	err := c.s.Segment(c.seq, slices.Clone(segment))
	c.seq++
	return err
}

// sends hands up a segment that must be accepted.
func (c *conversation) sends(that string, segment []byte) {
	c.Helper()
	require.NoError(c, c.send(segment), that)
}

// wantFault hands up a segment that must end the stream with code.
func (c *conversation) wantFault(that string, code transport.Code, segment []byte) {
	c.Helper()
	_ = c.isFault(that, code, c.send(segment))
}

// wantReport is wantFault, and returns the report.
func (c *conversation) wantReport(that string, code transport.Code, segment []byte) *SegmentError {
	c.Helper()
	return c.isFault(that, code, c.send(segment))
}

func (c *conversation) isFault(that string, code transport.Code, err error) *SegmentError {
	c.Helper()
	var e *SegmentError
	require.ErrorAs(c, err, &e, that)
	require.Equal(c, code, e.Code(), "%s: %v", that, err)
	return e
}

// wantDelivered checks what was delivered since the last time.
func (c *conversation) wantDelivered(that string, want ...string) {
	c.Helper()
	require.Equal(c, want, c.delivered, that)
	c.delivered = nil
}

// Segments as a peer would make them.

func tagged(last bool, st stag.STag, to uint64, payload []byte) []byte {
	return append(TaggedHeader{Last: last, RsvdULP: 0x40, STag: st, TO: to}.Append(nil), payload...)
}

func untagged(last bool, qn QN, msn MSN, mo uint32, payload []byte) []byte {
	return append(UntaggedHeader{Last: last, RsvdULP: 0x43, QN: qn, MSN: msn, MO: mo}.Append(nil), payload...)
}

// octets returns n octets that differ from their neighbours.
func octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251 + 1)
	}
	return b
}

// A scriptLLP records the segments that it is given. It has no more methods than streams and senders call.
type scriptLLP struct {
	transport.LLP

	mulpdu   int
	digest   bool
	capacity int // segments per batch, 0: unlimited
	batch    int
	sent     [][]byte // whole segments
	staged   []bool
	byRef    [][][]byte // their payloads as they were handed down
	ended    []string   // what it was told to end
}

func (l *scriptLLP) MaxULPDU() int { return l.mulpdu }

func (l *scriptLLP) Append(head []byte, payload [][]byte, stage bool) bool {
	if l.capacity > 0 && l.batch == l.capacity {
		return false
	}
	l.batch++
	l.sent = append(l.sent, append(slices.Clone(head), bytes.Join(payload, nil)...))
	l.staged = append(l.staged, stage)
	l.byRef = append(l.byRef, slices.Clone(payload))
	return true
}

func (l *scriptLLP) Flush(bool) error { l.batch = 0; return nil }
func (l *scriptLLP) CloseSend() error { l.ended = append(l.ended, "CloseSend"); return nil }

func (l *scriptLLP) Close() error         { l.ended = append(l.ended, "Close"); return nil }
func (l *scriptLLP) Abort(error)          { l.ended = append(l.ended, "Abort") }
func (l *scriptLLP) Caps() transport.Caps { return transport.Caps{Digest: l.digest} }

// emit sends all of m, flushing as often as it takes.
func emit(t *testing.T, s *Sender, l *scriptLLP, m *Message) {
	t.Helper()
	for {
		done, err := s.Emit(l, m)
		require.NoError(t, err, "the message can be sent")
		if done {
			return
		}
		require.NoError(t, l.Flush(true))
	}
}

// plain is a gather list of one piece of memory.
func plain(p []byte) []stag.Span { return []stag.Span{{Mem: p, Len: len(p)}} }

// A scriptBuffer is a stag.Buffer that can fail.
type scriptBuffer struct {
	mem  []byte
	fail error
}

// A lentBuffer is a stag.MemoryBuffer.
type lentBuffer struct {
	scriptBuffer
	lent, returned int
	broken         bool // Release panics
}

func (b *lentBuffer) Acquire(off int64, n int, _ bool) ([]byte, error) {
	if b.fail != nil {
		return nil, b.fail
	}
	b.lent++
	return b.mem[off:][:n], nil
}

func (b *lentBuffer) Release(int64, int, bool) {
	if b.broken {
		panic("broken")
	}
	b.returned++
}

var errScripted = errors.New("scripted failure")

func (b *scriptBuffer) Size() int64 { return int64(len(b.mem)) }

func (b *scriptBuffer) ReadAt(p []byte, off int64) (int, error) {
	if b.fail != nil {
		return 0, b.fail
	}
	return copy(p, b.mem[off:]), nil
}

func (b *scriptBuffer) WriteAt(p []byte, off int64) (int, error) {
	if b.fail != nil {
		return 0, b.fail
	}
	return copy(b.mem[off:], p), nil
}
