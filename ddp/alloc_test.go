package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A sink takes everything and remembers nothing: LLP, upper layer and queue for
// measurements.
type sink struct {
	NoBatch
	scriptLLP
	buf []stag.Span
}

func (*sink) Append([]byte, [][]byte, bool) bool            { return true }
func (*sink) Tagged(TaggedHeader, int) (stag.Access, error) { return stag.RemoteWrite, nil }
func (*sink) Untagged(UntaggedHeader, int) error            { return nil }
func (*sink) DeliverTagged(TaggedHeader) error              { return nil }
func (*sink) PlacedTagged(TaggedHeader, int) error          { return nil }
func (*sink) PredictTagged(int) (h TaggedHeader, access stag.Access, n uint64, ok bool) {
	return h, 0, 0, false
}

func (*sink) Posted() int                               { return 1 }
func (s *sink) Buffer(int, *UntaggedHeader) []stag.Span { return s.buf }
func (*sink) Missing() error                            { return nil }
func (*sink) Deliver(UntaggedHeader, uint32) error      { return nil }

var _ transport.LLP = (*sink)(nil)

// bench is a stream and a sender between which nothing is lost.
type bench struct {
	sink   *sink
	stream *Stream
	sender Sender
	region *stag.Region
	seq    uint64
	msn    MSN
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	table := stag.NewTable()
	r, err := table.Register(make([]byte, 1<<16), stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Scope: alice})
	require.NoError(tb, err)
	b := &bench{sink: &sink{scriptLLP: scriptLLP{mulpdu: 1 << 14}}, region: r, msn: firstMSN}
	b.sink.buf = []stag.Span{{Region: r, Len: 1 << 15}, {Region: r, Off: 1 << 15, Len: 1 << 15}}
	b.stream = New(Config{Table: table, Scope: alice, Upper: b.sink, Window: 4})
	b.stream.Bind(0, b.sink)
	return b
}

// tagged takes a segment whose STag is already right.
func (b *bench) tagged(segment []byte) error {
	b.seq++
	return b.stream.Segment(b.seq-1, segment)
}

// untagged takes a segment after giving it the MSN that is due.
func (b *bench) untagged(h UntaggedHeader, segment []byte) error {
	h.MSN = b.msn
	h.Append(segment[:0])
	b.msn = b.msn.Next()
	return b.tagged(segment)
}

func (b *bench) write(m *Message, source []stag.Span) (bool, error) {
	*m = Message{Tagged: true, RsvdULP: 0x40, STag: b.region.STag(), Source: source}
	return b.sender.Emit(b.sink, m)
}

func TestNoAllocationPerSegment(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	b := newBench(t)
	check := func(that string, f func() error) {
		t.Helper()
		require.NoError(t, f(), that)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = f() }), that)
	}
	write := tagged(true, b.region.STag(), 100, octets(1000))
	check("a tagged segment", func() error { return b.tagged(write) })
	send := untagged(true, 0, 0, 0, octets(1000))
	check("an untagged segment", func() error { return b.untagged(UntaggedHeader{Last: true}, send) })

	first, second := tagged(false, b.region.STag(), 0, octets(9)), tagged(true, b.region.STag(), 9, octets(9))
	check("two segments out of order", func() error {
		b.seq += 2
		err := b.stream.Segment(b.seq-1, second)
		if err == nil {
			err = b.stream.Segment(b.seq-2, first)
		}
		return err
	})

	var m Message
	check("a Write of several segments", func() error {
		_, err := b.write(&m, b.sink.buf)
		return err
	})
	wire := make([]byte, 0, UntaggedLen)
	check("headers", func() error {
		h, err := ParseTagged(write)
		h.Append(wire)
		u, err2 := ParseUntagged(send)
		u.Append(wire)
		if err == nil {
			err = err2
		}
		return err
	})
}

func TestNoAllocationPerSegmentOfABuffer(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates, and makes pools forget")
	}
	b := newBench(t)
	file := scriptBuffer{mem: octets(1 << 16)}
	for _, buf := range []stag.Buffer{&file, &lentBuffer{scriptBuffer: file}} {
		r, err := stag.NewTable().RegisterBuffer(buf, stag.Options{Access: stag.LocalWrite})
		require.NoError(t, err)
		source := []stag.Span{{Region: r, Len: 1 << 16}}
		var m Message
		require.Less(t, testing.AllocsPerRun(100, func() { _, _ = b.write(&m, source) }), 1.0,
			"chunks are used again, unless the garbage collector took them")
	}
}

func BenchmarkTaggedSegment(b *testing.B) {
	bench := newBench(b)
	segment := tagged(true, bench.region.STag(), 0, octets(8192))
	b.SetBytes(8192)
	for b.Loop() {
		if err := bench.tagged(segment); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSmallSend(b *testing.B) {
	bench := newBench(b)
	segment := untagged(true, 0, 0, 0, octets(64))
	for b.Loop() {
		if err := bench.untagged(UntaggedHeader{Last: true}, segment); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmitWrite(b *testing.B) {
	bench := newBench(b)
	var m Message
	for b.Loop() {
		if _, err := bench.write(&m, bench.sink.buf); err != nil {
			b.Fatal(err)
		}
	}
}
