package rdmap

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

var unhex = octettest.Hex

// The tests are conversations between one Stream and a scripted peer. Every check
// starts with the expectation in English.

var (
	alice = stag.Scope{PD: 1, Stream: 10} // the stream under test
	bob   = stag.Scope{PD: 1, Stream: 11} // another of the same PD
	carol = stag.Scope{PD: 2, Stream: 20} // one of another PD
)

// A conversation is one Stream and all that stands around it.
type conversation struct {
	*testing.T
	table *stag.Table
	s     *Stream
	llp   *scriptLLP
	seq   uint64 // of the next segment of the peer

	buffers    [][]stag.Span // posted receives
	missing    error
	received   []Received
	runs       []int    // how many Sends were delivered together
	done       []string // completions
	answered   []uint64 // requests that completed with Answered
	replies    []string // of completed extensions
	olds       []uint64 // of completed atomic operations
	terminated []Terminate
	kicks      int
	watched    *stag.Region // looked at when something is delivered or completes
	watchedIs  []bool
}

// converse starts a conversation; change may alter the configuration.
func converse(t *testing.T, change func(*Config)) *conversation {
	c := &conversation{T: t, table: stag.NewTable(), llp: &scriptLLP{mulpdu: 1500}}
	config := Config{Table: c.table, Scope: alice, IRD: 4, ORD: 4, SendDepth: 16, Receives: c, Events: c}
	if change != nil {
		change(&config)
	}
	c.s = New(config)
	return c
}

// Receives and Events.

func (c *conversation) Posted() int              { return len(c.buffers) }
func (c *conversation) Buffer(k int) []stag.Span { return c.buffers[k] }
func (c *conversation) Missing() error           { return c.missing }

func (c *conversation) Deliver(m Received) {
	c.buffers = c.buffers[1:]
	c.received = append(c.received, m)
	c.watch()
}

func (c *conversation) DeliverSends(op Opcode, lens []uint32) {
	c.runs = append(c.runs, len(lens))
	for _, n := range lens {
		c.Deliver(Received{Opcode: op, Len: n, Solicited: op.Solicited()})
	}
}

func (c *conversation) Completed() {}

func (c *conversation) Complete(r *Request, st Status, code transport.Code) {
	line := fmt.Sprintf("%d %v", r.ID, st)
	if code != 0 {
		line += fmt.Sprintf(" %04x", uint16(code))
	}
	c.done = append(c.done, line)
	if r.Answered {
		c.answered = append(c.answered, r.ID)
	}
	if r.Kind == KindExtension && st == StatusSuccess {
		c.replies = append(c.replies, string(r.Reply))
	}
	if r.Kind == KindAtomic && st == StatusSuccess {
		c.olds = append(c.olds, r.Old)
	}
	c.watch()
}

func (c *conversation) Terminated(t Terminate) { c.terminated = append(c.terminated, t) }
func (c *conversation) Kick()                  { c.kicks++ }

func (c *conversation) watch() {
	if c.watched != nil {
		c.watchedIs = append(c.watchedIs, c.watched.Valid())
	}
}

// region registers n octets from TO 0x1000 on, for alice alone, with every right
// unless told.
func (c *conversation) region(n int, change func(*stag.Options)) (*stag.Region, []byte) {
	c.Helper()
	mem := make([]byte, n)
	o := stag.Options{Access: stag.LocalWrite | stag.Remote, BaseTO: 0x1000, Scope: alice}
	if change != nil {
		change(&o)
	}
	r, err := c.table.Register(mem, o)
	require.NoError(c, err, "registering works")
	return r, mem
}

// span is n octets at off of r.
func span(r *stag.Region, off, n int) stag.Span {
	return stag.Span{Region: r, Off: uint64(off), Len: n}
}

// receive posts a receive of n octets.
func (c *conversation) receive(n int) []byte {
	mem := make([]byte, n)
	c.buffers = append(c.buffers, []stag.Span{{Mem: mem, Len: n}})
	return mem
}

// The requests of this side. The ID is what completions are known by.

func sendOf(id uint64, payload string) Request {
	return Request{ID: id, Kind: KindSend, Inline: []byte(payload), Inlined: true}
}

func writeOf(id uint64, to RemoteAddr, payload string) Request {
	return Request{ID: id, Kind: KindWrite, Inline: []byte(payload), Inlined: true, Remote: to}
}

func readOf(id uint64, from RemoteAddr, sink ...stag.Span) Request {
	return Request{ID: id, Kind: KindRead, Spans: sink, Remote: from}
}

func immediateOf(id uint64, imm string) Request {
	r := Request{ID: id, Kind: KindImmediate}
	copy(r.Imm[:], imm)
	return r
}

func atomicOf(id uint64, h AtomicRequest) Request {
	return Request{ID: id, Kind: KindAtomic, Inline: h.Append(nil)}
}

func (r Request) with(f Flags) Request {
	r.Flags |= f
	return r
}

// post posts requests, which must be taken.
func (c *conversation) post(rs ...Request) {
	c.Helper()
	n, err := c.tryPost(rs...)
	require.NoError(c, err, "the requests can be posted")
	require.Equal(c, len(rs), n, "the requests can be posted")
}

func (c *conversation) tryPost(rs ...Request) (int, error) {
	return c.s.Post(len(rs), func(i int, r *Request) error {
		p := &rs[i]
		r.Kind, r.Flags, r.ID, r.Remote, r.Invalidate = p.Kind, p.Flags, p.ID, p.Remote, p.Invalidate
		r.Spans = append(r.Spans, p.Spans...)
		r.Inline, r.Inlined, r.Ext = append(r.Inline, p.Inline...), p.Inlined, p.Ext
		r.Enable, r.Imm = p.Enable, p.Imm
		return nil
	})
}

// take hands up one segment, by itself. seq is its number in the order of the peer: send counts it, and a number that has
// come before is ignored.
func (c *conversation) take(seq uint64, segment []byte) error {
	err := c.s.Segment(seq, segment)
	c.s.BatchDone()
	return err
}

// flush sends all that can be sent, as a QP does.
func (c *conversation) flush() error {
	for {
		more, err := c.s.Fill(c.llp)
		require.NoError(c, c.s.Flush(c.llp))
		c.s.Flushed()
		if err != nil || !more && !c.s.Pending() {
			return err
		}
	}
}

// wantSegment flushes and takes the next segment sent, which must be want.
func (c *conversation) wantSegment(that string, want []byte) {
	c.Helper()
	require.NoError(c, c.flush(), that)
	require.NotEmpty(c, c.llp.sent, that)
	require.Equal(c, hex.EncodeToString(want), hex.EncodeToString(c.llp.sent[0]), that)
	c.llp.sent = c.llp.sent[1:]
}

// wantIdle checks that nothing is sent.
func (c *conversation) wantIdle(that string) {
	c.Helper()
	require.NoError(c, c.flush(), that)
	require.Empty(c, c.llp.sent, that)
}

// wantDone checks what completed since the last time, as "ID status".
func (c *conversation) wantDone(that string, want ...string) {
	c.Helper()
	require.Equal(c, want, c.done, that)
	c.done = nil
}

// wantReceived checks what was delivered since the last time.
func (c *conversation) wantReceived(that string, want ...Received) {
	c.Helper()
	require.Equal(c, want, c.received, that)
	c.received = nil
}

// sends sends segments of the peer, which must be taken.
func (c *conversation) sends(that string, segments ...[]byte) {
	c.Helper()
	for _, g := range segments {
		require.NoError(c, c.send(g), that)
	}
}

func (c *conversation) send(segment []byte) error {
	err := c.take(c.seq, slices.Clone(segment))
	c.seq++
	return err
}

// wantFault sends a segment of the peer that must end the stream with code.
func (c *conversation) wantFault(that string, code transport.Code, segment []byte) {
	c.Helper()
	_ = c.fault(that, code, segment)
}

// fault is wantFault, and returns the error.
func (c *conversation) fault(that string, code transport.Code, segment []byte) *ddp.SegmentError {
	c.Helper()
	err := c.send(segment)
	var e *ddp.SegmentError
	require.ErrorAs(c, err, &e, that)
	require.Equal(c, code, e.Code(), "%s: %v", that, err)
	return e
}

// wantRefused is wantFault, and the Terminate that follows must be want.
func (c *conversation) wantRefused(that string, segment []byte, want Terminate) {
	c.Helper()
	err := c.fault(that, want.Code, segment)
	require.True(c, c.s.Terminate(err), that)
	c.wantTerminate(that, want)
}

// wantTerminate checks that a Terminate is sent, and then nothing.
func (c *conversation) wantTerminate(that string, want Terminate) {
	c.Helper()
	c.wantSegment(that, terminateOf(want))
	c.wantIdle(that + "; nothing follows a Terminate")
	got, sent := c.s.TerminateSent()
	require.True(c, sent, that)
	require.Equal(c, want, got, that)
	if class := got.Code & 0xff00; class != 0 { // 0/0 has any code
		require.Contains(c, registered[class], got.Code&0xff, "%s: the code is registered", that)
	}
}

// Segments as they are on the wire.

func tagged(op Opcode, last bool, at RemoteAddr, payload string) []byte {
	h := ddp.TaggedHeader{Last: last, RsvdULP: op.control(), STag: at.STag, TO: at.TO}
	return append(h.Append(nil), payload...)
}

func untagged(op Opcode, qn ddp.QN, msn ddp.MSN, payload string) []byte {
	h := ddp.UntaggedHeader{Last: true, RsvdULP: op.control(), QN: qn, MSN: msn}
	return append(h.Append(nil), payload...)
}

func invalidating(op Opcode, msn ddp.MSN, st stag.STag, payload string) []byte {
	h := ddp.UntaggedHeader{Last: true, RsvdULP: op.control(), RsvdULPWord: uint32(st), MSN: msn}
	return append(h.Append(nil), payload...)
}

func readRequestOf(msn ddp.MSN, h ReadRequest) []byte {
	return untagged(OpReadRequest, QNRequest, msn, string(h.Append(nil)))
}

func immediate(msn ddp.MSN, imm string) []byte { return untagged(OpImmediate, QNSend, msn, imm) }

func atomicRequestOf(msn ddp.MSN, h AtomicRequest) []byte {
	return untagged(OpAtomicRequest, QNRequest, msn, string(h.Append(nil)))
}

func atomicResponseOf(msn ddp.MSN, id uint32, old uint64) []byte {
	return untagged(OpAtomicResponse, QNResponse, msn, string(AtomicResponse{ID: id, Old: old}.Append(nil)))
}

func terminateOf(t Terminate) []byte {
	return untagged(OpTerminate, QNTerminate, 1, string(t.Append(nil)))
}

// blaming is the Terminate that is sent about a segment.
func blaming(code transport.Code, segment []byte) Terminate {
	n := ddp.UntaggedLen
	if ddp.IsTagged(segment) {
		n = ddp.TaggedLen
	}
	return Terminate{Code: code, SegmentLen: len(segment), DDPHeader: slices.Clone(segment[:n])}
}

// bare is a Terminate without headers.
func bare(code transport.Code) Terminate { return Terminate{Code: code, SegmentLen: -1} }

// patch returns a copy of a segment with one octet changed.
func patch(segment []byte, at int, to byte) []byte {
	b := slices.Clone(segment)
	b[at] = to
	return b
}

// octets returns n octets that differ from their neighbours.
func octets(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251 + 1)
	}
	return string(b)
}

// A scriptLLP records the segments that it is given. It has no more methods than streams call.
type scriptLLP struct {
	transport.LLP

	mulpdu   int
	capacity int // segments per batch, 0: unlimited
	discard  bool
	batch    int
	sent     [][]byte
	staged   []bool
	digest   bool
	flush    error  // what Flush returns
	kept     bool   // Stage was called
	before   func() // an Append, if not nil
}

func (l *scriptLLP) MaxULPDU() int { return l.mulpdu }

func (l *scriptLLP) Append(head []byte, payload [][]byte, stage bool) bool {
	if l.capacity > 0 && l.batch == l.capacity {
		return false
	}
	if l.before != nil {
		l.before()
	}
	l.batch++
	if l.discard {
		return true
	}
	l.sent = append(l.sent, append(slices.Clone(head), bytes.Join(payload, nil)...))
	l.staged = append(l.staged, stage)
	return true
}

func (l *scriptLLP) Flush(bool) error     { l.batch = 0; return l.flush }
func (l *scriptLLP) Stage()               { l.kept = true }
func (l *scriptLLP) Caps() transport.Caps { return transport.Caps{Digest: l.digest} }
