package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// quiet is a queue pair that takes no notes.
type quiet struct{ buffer []stag.Span }

func (q *quiet) Posted() int                   { return 1 }
func (q *quiet) Buffer(int) []stag.Span        { return q.buffer }
func (q *quiet) Missing() error                { return nil }
func (q *quiet) Deliver(Received)              {}
func (q *quiet) DeliverSends(Opcode, []uint32) {}
func (*quiet) Completed()                      {}

func (q *quiet) Complete(*Request, Status, transport.Code) {}
func (q *quiet) Terminated(Terminate)                      {}
func (q *quiet) Kick()                                     {}

// steady is a stream for measuring, with a region of 4 KiB.
func steady(tb testing.TB, e ...*Extension) (*Stream, *scriptLLP, *stag.Region) {
	table := stag.NewTable()
	r, err := table.Register(make([]byte, 4096), stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice})
	require.NoError(tb, err)
	q := &quiet{buffer: []stag.Span{span(r, 0, 4096)}}
	s := New(Config{Table: table, Scope: alice, IRD: 4, ORD: 4, SendDepth: 64, Receives: q, Events: q, Extensions: e})
	return s, &scriptLLP{mulpdu: 1500, discard: true}, r
}

// cycle fills and flushes all that is ready.
func cycle(s *Stream, llp *scriptLLP) {
	if _, err := s.Fill(llp); err != nil {
		panic(err)
	}
	_ = s.Flush(llp)
	s.Flushed()
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	skipUnderRace(t)
	e := Extension{Request: opEcho, Response: opEchoed, MaxRequest: 64, MaxResponse: 64, Serve: func(in *Inbound) { in.Reply(in.Payload()) }}
	s, llp, r := steady(t, &e)
	seq := uint64(0)
	take := func(segment []byte) {
		if err := s.Segment(seq, segment); err != nil {
			panic(err)
		}
		s.BatchDone()
		seq++
	}
	header := func(b []byte, h ddp.UntaggedHeader) { h.Append(b[:0]) }
	msn := map[ddp.QN]*ddp.MSN{0: new(ddp.MSN), 1: new(ddp.MSN), 3: new(ddp.MSN)}
	// next numbers an untagged segment as the next of its queue.
	next := func(b []byte, op Opcode, qn ddp.QN) []byte {
		*msn[qn]++
		header(b, ddp.UntaggedHeader{Last: true, RsvdULP: op.control(), QN: qn, MSN: *msn[qn]})
		return b
	}
	post := func(fill func(i int, q *Request) error) {
		if _, err := s.Post(1, fill); err != nil {
			panic(err)
		}
		cycle(s, llp)
	}
	write := func(_ int, q *Request) error {
		q.Kind, q.Remote, q.Spans = KindWrite, target, append(q.Spans, span(r, 0, 4096))
		return nil
	}
	send := func(_ int, q *Request) error {
		q.Kind, q.Inlined, q.Inline = KindSend, true, append(q.Inline, "hello"...)
		return nil
	}
	read := func(_ int, q *Request) error {
		q.Kind, q.Remote, q.Spans = KindRead, target, append(q.Spans, span(r, 0, 64))
		return nil
	}
	ext := func(_ int, q *Request) error {
		q.Kind, q.Ext, q.Inline = KindExtension, &e, append(q.Inline, "hello"...)
		return nil
	}
	imm := func(_ int, q *Request) error {
		q.Kind = KindImmediate
		return nil
	}
	writeImm := func(_ int, q *Request) error {
		q.Flags = WithImmediate
		return write(0, q)
	}
	swap := AtomicRequest{Op: CompareSwap, At: RemoteAddr{r.STag(), 8}, CompareMask: 1}
	atomic := func(_ int, q *Request) error {
		q.Kind, q.Inline = KindAtomic, swap.Append(q.Inline)
		return nil
	}
	inImmediate := immediate(0, "12345678")
	inAtomic := atomicRequestOf(0, swap)
	inOld := atomicResponseOf(0, 0, 0)
	// old answers the last atomic operation.
	old := func() []byte {
		identify(inOld[ddp.UntaggedLen-4:], s.orq.at(0).msn)
		return next(inOld, OpAtomicResponse, 3)
	}
	response := tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0}, octets(64))
	inWrite := tagged(OpWrite, true, RemoteAddr{r.STag(), 0}, octets(1000))
	inSend := untagged(OpSend, QNSend, 0, "hello")
	inRead := readRequestOf(0, ReadRequest{Sink: target, Size: 3000, Src: RemoteAddr{r.STag(), 0}})
	inExt := untagged(opEcho, QNRequest, 0, "hello")
	inReply := untagged(opEchoed, QNResponse, 0, "hello")

	for what, op := range map[string]func(){
		"a Write":                      func() { post(write) },
		"a Send":                       func() { post(send) },
		"a Read and its Response":      func() { post(read); take(response) },
		"an extension and its reply":   func() { post(ext); take(next(inReply, opEchoed, 3)) },
		"Immediate Data":               func() { post(imm) },
		"a Write with Immediate":       func() { post(writeImm) },
		"an atomic operation":          func() { post(atomic); take(old()) },
		"Immediate Data of the peer":   func() { take(next(inImmediate, OpImmediate, 0)) },
		"an Atomic Request":            func() { take(next(inAtomic, OpAtomicRequest, 1)); cycle(s, llp) },
		"a Write of the peer":          func() { take(inWrite) },
		"a Send of the peer":           func() { take(next(inSend, OpSend, 0)) },
		"a Read of the peer":           func() { take(next(inRead, OpReadRequest, 1)); cycle(s, llp) },
		"an extension of the peer":     func() { take(next(inExt, opEcho, 1)); cycle(s, llp) },
		"asking if anything is to do ": func() { _ = s.Pending(); _ = s.Outstanding() },
	} {
		for range 100 {
			op() // until the rings have their size
		}
		require.Zero(t, testing.AllocsPerRun(100, op), what)
	}
}

// TestARCH_1_MemoryForABufferIsUsedAgain: the octets of a Buffer are read into memory that the batch needs until it has left, or
// until the rest was copied.
func TestARCH_1_MemoryForABufferIsUsedAgain(t *testing.T) {
	skipUnderRace(t)
	const size = 32 << 10
	table, q := stag.NewTable(), new(quiet)
	file, err := table.RegisterBuffer(&longBuffer{size: size}, stag.Options{Access: stag.RemoteRead, Scope: alice})
	require.NoError(t, err)
	s, llp := New(Config{Table: table, Scope: alice, IRD: 4, Receives: q, Events: q}), &scriptLLP{mulpdu: size + 100, discard: true}
	in, msn := readRequestOf(0, ReadRequest{Sink: target, Size: size, Src: RemoteAddr{file.STag(), 0}}), ddp.MSN(0)
	for how, op := range map[string]func(){
		"it has left": func() { cycle(s, llp) },
		"it was copied": func() {
			llp.flush = transport.ErrAgain
			_, err := s.Fill(llp)
			require.NoError(t, err)
			require.ErrorIs(t, s.Flush(llp), transport.ErrAgain)
			require.True(t, llp.kept)
			llp.flush = nil
		},
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			msn++
			ddp.UntaggedHeader{Last: true, RsvdULP: OpReadRequest.control(), QN: QNRequest, MSN: msn}.Append(in[:0])
			require.NoError(t, s.Segment(uint64(msn)-1, in))
			s.BatchDone()
			op()
		}), how)
	}
}

func BenchmarkSend64(b *testing.B) {
	s, llp, _ := steady(b)
	payload := []byte(octets(64))
	fill := func(_ int, q *Request) error {
		q.Kind, q.Inlined, q.Inline = KindSend, true, append(q.Inline, payload...)
		return nil
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Post(32, fill); err != nil {
			b.Fatal(err)
		}
		cycle(s, llp)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/send")
}
