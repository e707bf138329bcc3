package commit

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

var unhex = octettest.Hex

// The tests are conversations between one stream with Commit and a scripted peer. Every
// check starts with the expectation in English.

var (
	alice = stag.Scope{PD: 1, Stream: 10} // the stream under test
	bob   = stag.Scope{PD: 1, Stream: 11} // another of the same PD
)

// A conversation is one stream and its surroundings.
type conversation struct {
	*testing.T
	transport.LLP      // the conversation has the methods that
	rdmap.ReceiveQueue // streams with Commit call of these three
	rdmap.Events
	table *stag.Table
	s     *rdmap.Stream
	ext   *rdmap.Extension
	stats Stats
	sent  [][]byte
	seq   uint64
	done  []string
	tasks []func() // that were started and have not run; see run
	media media
	msgs  []rdmap.Received
}

// converse starts a conversation; change may alter the configurations.
func converse(t *testing.T, change func(*Config, *rdmap.Config)) *conversation {
	c := &conversation{T: t, table: stag.NewTable()}
	cfg := Config{Table: c.table, Scope: alice, Limits: Offer{Regions: 4}, Stats: &c.stats}
	cfg.Task = func(f func()) func() { return func() { c.tasks = append(c.tasks, f) } }
	r := rdmap.Config{Table: c.table, Scope: alice, IRD: 4, ORD: 4, SendDepth: 16, Receives: c, Events: c}
	if change != nil {
		change(&cfg, &r)
	}
	c.ext = NewExtension(cfg)
	if r.Extensions == nil {
		r.Extensions = []*rdmap.Extension{c.ext}
	}
	c.s = rdmap.New(r)
	return c
}

// run runs the tasks that were started, and the tasks that they start.
func (c *conversation) run() {
	for len(c.tasks) > 0 {
		f := c.tasks[0]
		c.tasks = c.tasks[1:]
		f()
	}
}

// Receives and Events.

func (c *conversation) Posted() int              { return 1 }
func (c *conversation) Buffer(int) []stag.Span   { return nil }
func (c *conversation) Deliver(m rdmap.Received) { c.msgs = append(c.msgs, m) }
func (c *conversation) Completed()               {}
func (c *conversation) Kick()                    {}

func (c *conversation) Complete(r *rdmap.Request, st rdmap.Status, _ transport.Code) {
	line := fmt.Sprintf("%d %v", r.ID, st)
	if r.Kind == rdmap.KindExtension && st == rdmap.StatusSuccess {
		line = fmt.Sprintf("%d %v", r.ID, StatusOf(r))
	}
	c.done = append(c.done, line)
}

// media is a backing that does what the test says.
type media struct {
	mu      sync.Mutex
	flushed []Range
	fail    map[int64]error // by offset
	before  func()
}

func (m *media) Flush(_ context.Context, off, n int64) error {
	if m.before != nil {
		m.before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed = append(m.flushed, Range{off, n})
	return m.fail[off]
}

// region registers 64 octets from TO 0x1000 on, durable by c.media, with every right
// unless told.
func (c *conversation) region(change func(*stag.Options)) (*stag.Region, []byte) {
	c.Helper()
	mem := make([]byte, 64)
	o := stag.Options{Access: stag.LocalWrite | stag.Remote, BaseTO: 0x1000, Scope: alice, Flusher: &c.media}
	if change != nil {
		change(&o)
	}
	r, err := c.table.Register(mem, o)
	require.NoError(c, err)
	return r, mem
}

// part is n octets of r from off.
func part(r *stag.Region, off, n int) Region {
	return Region{STag: r.STag(), TO: r.BaseTO() + uint64(off), Len: uint32(n)}
}

func ask(id uint32, regions ...Region) Request { return Request{ID: id, Regions: regions} }

func (r Request) then(st stag.STag, to, value uint64) Request {
	r.HasFollowOn, r.At, r.Value = true, Region{STag: st, TO: to}, value
	return r
}

// Segments as they are on the wire.

func untagged(control byte, qn ddp.QN, msn ddp.MSN, payload string) []byte {
	return append(ddp.UntaggedHeader{Last: true, RsvdULP: control, QN: qn, MSN: msn}.Append(nil), payload...)
}

func requestOf(msn ddp.MSN, r Request) []byte {
	return untagged(0x4c, 1, msn, string(r.Append(nil)))
}

func responseOf(msn ddp.MSN, id uint32, st Status) []byte {
	return untagged(0x4d, 3, msn, string(Response{ID: id, Status: st}.Append(nil)))
}

func readOf(msn ddp.MSN) []byte {
	return untagged(0x41, 1, msn, string(rdmap.ReadRequest{}.Append(nil)))
}

var readResponse = ddp.TaggedHeader{Last: true, RsvdULP: 0x42}.Append(nil)

func writeOf(at Region, payload string) []byte {
	return append(ddp.TaggedHeader{Last: true, RsvdULP: 0x40, STag: at.STag, TO: at.TO}.Append(nil), payload...)
}

// addOf is an Atomic Request that adds 1.
func addOf(msn ddp.MSN, at Region) []byte {
	h := rdmap.AtomicRequest{Op: rdmap.FetchAdd, ID: uint32(msn), At: rdmap.RemoteAddr{STag: at.STag, TO: at.TO}, Data: 1}
	return untagged(0x4a, 1, msn, string(h.Append(nil)))
}

func atomicResponseOf(msn ddp.MSN, id uint32, old uint64) []byte {
	return untagged(0x4b, 3, msn, string(rdmap.AtomicResponse{ID: id, Old: old}.Append(nil)))
}

// sends sends segments of the peer, which must be taken.
func (c *conversation) sends(that string, segments ...[]byte) {
	c.Helper()
	for _, g := range segments {
		require.NoError(c, c.send(g), that)
	}
}

func (c *conversation) send(segment []byte) error {
	err := c.s.Segment(c.seq, slices.Clone(segment))
	c.seq++
	c.s.BatchDone()
	return err
}

func (c *conversation) flush() error {
	for {
		more, err := c.s.Fill(c)
		require.NoError(c, c.s.Flush(c))
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
	require.NotEmpty(c, c.sent, that)
	require.Equal(c, hex.EncodeToString(want), hex.EncodeToString(c.sent[0]), that)
	c.sent = c.sent[1:]
}

// wantIdle checks that nothing is sent.
func (c *conversation) wantIdle(that string) {
	c.Helper()
	require.NoError(c, c.flush(), that)
	require.Empty(c, c.sent, that)
}

// wantAnswer runs the tasks, and wants the response st to request id.
func (c *conversation) wantAnswer(that string, msn ddp.MSN, id uint32, st Status) {
	c.Helper()
	c.run()
	c.wantSegment(that, responseOf(msn, id, st))
}

// wantRefused sends a request of the peer for which the stream must end with code. The
// Terminate carries the DDP header of the request and no RDMA header.
func (c *conversation) wantRefused(that string, code transport.Code, segment []byte) {
	c.Helper()
	err := c.send(segment)
	if err == nil {
		c.run()
		err = c.flush()
	}
	var e *ddp.SegmentError
	require.ErrorAs(c, err, &e, that)
	require.Equal(c, code, e.Code(), "%s: %v", that, err)
	require.True(c, c.s.Terminate(err), that)
	c.sent = nil
	t := rdmap.Terminate{Code: code, SegmentLen: len(segment), DDPHeader: segment[:18]}
	c.wantSegment(that, untagged(0x47, 2, 1, string(t.Append(nil))))
}

// posts posts Commits, whose work request has the number of the request.
func (c *conversation) posts(rs ...Request) {
	c.Helper()
	_, err := c.s.Post(len(rs), func(i int, r *rdmap.Request) error {
		r.Kind, r.Ext, r.ID, r.Inline = rdmap.KindExtension, c.ext, uint64(rs[i].ID), rs[i].Append(r.Inline)
		return nil
	})
	require.NoError(c, err)
}

func (c *conversation) wantDone(that string, want ...string) {
	c.Helper()
	require.Equal(c, want, c.done, that)
	c.done = nil
}

// The conversation is the LLP, too: it records the segments that it is given.

func (c *conversation) MaxULPDU() int { return 1500 }

func (c *conversation) Append(head []byte, payload [][]byte, _ bool) bool {
	c.sent = append(c.sent, append(slices.Clone(head), bytes.Join(payload, nil)...))
	return true
}
func (c *conversation) Flush(bool) error     { return nil }
func (c *conversation) Caps() transport.Caps { return transport.Caps{} }

// msnOf is a message number.
func msnOf(n uint32) ddp.MSN { return ddp.MSN(n) }

// wantRefusedNow wants the segment itself refused.
func (c *conversation) wantRefusedNow(that string, code transport.Code, segment []byte) {
	c.Helper()
	var e *ddp.SegmentError
	require.ErrorAs(c, c.send(segment), &e, that)
	require.Equal(c, code, e.Code(), that)
}
