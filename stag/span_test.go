package stag

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// testFile is a Buffer in memory of fixed size.
type testFile struct {
	data []byte
	err  error // of every call, if not nil
	cut  int   // octets that ReadAt and WriteAt fall short by
}

func (f *testFile) Size() int64 { return int64(len(f.data)) }

func (f *testFile) ReadAt(p []byte, off int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n := copy(p, f.data[off:]) - f.cut
	if off+int64(n) == f.Size() {
		return n, io.EOF
	}
	return n, nil
}

func (f *testFile) WriteAt(p []byte, off int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return copy(f.data[off:], p) - f.cut, nil
}

// numbered returns n octets that differ from their neighbours.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

// testSpans is a list of 20 octets over plain memory, a region and, if file is not
// nil, a Buffer, with an empty span in between.
func testSpans(t *testing.T, file *testFile) (spans []Span, table *Table, region *Region) {
	t.Helper()
	table = NewTable()
	region, err := table.Register(make([]byte, 16), Options{Access: LocalWrite})
	require.NoError(t, err)
	spans = []Span{
		{Mem: make([]byte, 12), Off: 2, Len: 7},
		{Mem: nil, Len: 0},
		{Region: region, Off: 3, Len: 8},
		{Mem: make([]byte, 5), Len: 5},
	}
	if file != nil {
		r, err := table.RegisterBuffer(file, Options{Access: LocalWrite})
		require.NoError(t, err)
		spans[3] = Span{Region: r, Off: 1, Len: 5}
	}
	return spans, table, region
}

func TestSpansReadBackWhatWasPlaced(t *testing.T) {
	for _, file := range []*testFile{nil, {data: make([]byte, 8)}} {
		for off := range 21 {
			for n := range 21 - off {
				spans, _, _ := testSpans(t, file)
				p := numbered(n)
				require.Equal(t, uint64(20), TotalLen(spans))
				require.NoError(t, PlaceAt(spans, uint64(off), p))

				whole := make([]byte, 20)
				require.NoError(t, ReadAt(spans, whole, 0))
				require.Equal(t, p, whole[off:off+n], "the octets are where they were placed")
				clear(whole[off : off+n])
				if file == nil {
					require.Equal(t, make([]byte, 20), whole, "no octet around them was touched")
				}

				part := make([]byte, n)
				require.NoError(t, ReadAt(spans, part, uint64(off)))
				require.Equal(t, p, part, "the part reads as the whole does")
			}
		}
	}
}

func TestGatherSharesMemory(t *testing.T) {
	spans, _, _ := testSpans(t, nil)
	require.NoError(t, PlaceAt(spans, 0, numbered(20)))
	head := []byte("head")
	for off := range 21 {
		for n := range 21 - off {
			out, ok := Gather([][]byte{head}, spans, uint64(off), n)
			require.True(t, ok, "the list is memory only")
			require.Equal(t, head, out[0], "what was in dst stays")
			require.Equal(t, numbered(20)[off:off+n], append([]byte{}, bytes.Join(out[1:], nil)...))
		}
	}
	out, _ := Gather(nil, spans, 6, 2)
	out[0][0] = 0xff
	require.Equal(t, byte(0xff), spans[0].Mem[8], "the slices are the spans' own memory")
	require.Equal(t, len(out[0]), cap(out[0]), "an append cannot run into the neighbour")
}

func TestGatherRefusesABuffer(t *testing.T) {
	spans, _, _ := testSpans(t, &testFile{data: make([]byte, 8)})
	dst := [][]byte{[]byte("x")}
	for _, c := range []struct {
		off uint64
		n   int
		ok  bool
	}{{0, 15, true}, {0, 16, false}, {15, 1, false}, {19, 1, false}, {14, 1, true}, {15, 0, true}} {
		out, ok := Gather(dst, spans, c.off, c.n)
		require.Equal(t, c.ok, ok, "octets [%d, +%d)", c.off, c.n)
		if !ok {
			require.Equal(t, dst, out, "dst is unchanged")
		}
	}
}

func TestSpansRefuseWhatDoesNotFit(t *testing.T) {
	spans, _, _ := testSpans(t, nil)
	for _, c := range []struct {
		off uint64
		n   int
	}{{0, 21}, {20, 1}, {21, 0}, {1 << 63, 1}, {^uint64(0), 1}} {
		require.ErrorIs(t, PlaceAt(spans, c.off, numbered(c.n)), ErrBounds)
		require.ErrorIs(t, ReadAt(spans, make([]byte, c.n), c.off), ErrBounds)
		_, ok := Gather(nil, spans, c.off, c.n)
		require.False(t, ok)
	}
	_, ok := Gather(nil, spans, 0, -1)
	require.False(t, ok, "a negative length is refused")
	whole := make([]byte, 20)
	require.NoError(t, ReadAt(spans, whole, 0))
	require.Equal(t, make([]byte, 20), whole, "nothing was placed")
}

func TestSpansOutsideTheirMemory(t *testing.T) {
	table := NewTable()
	r, err := table.Register(make([]byte, 4), Options{Access: LocalWrite})
	require.NoError(t, err)
	for _, s := range []Span{
		{Mem: make([]byte, 4), Off: 1, Len: 4},
		{Mem: make([]byte, 4), Off: 5, Len: 1},
		{Mem: make([]byte, 4), Off: ^uint64(0), Len: 4},
		{Region: r, Off: 1, Len: 4},
		{Region: r, Off: ^uint64(0), Len: 4},
	} {
		require.ErrorIs(t, PlaceAt([]Span{s}, 0, numbered(s.Len)), ErrBounds)
		require.ErrorIs(t, ReadAt([]Span{s}, numbered(s.Len), 0), ErrBounds)
		_, ok := Gather(nil, []Span{s}, 0, s.Len)
		require.False(t, ok)
	}
}

func TestWhatIsPlacedNowhereIsThrownAway(t *testing.T) {
	mem := make([]byte, 2)
	spans := []Span{{Mem: mem, Len: 1}, {Len: 4}, {Mem: mem[1:], Len: 1}}
	require.NoError(t, PlaceAt(spans, 0, []byte("a....b")))
	require.Equal(t, "ab", string(mem))
	require.NoError(t, PlaceAt(spans[1:2], 1, []byte("..")))
	require.ErrorIs(t, PlaceAt(spans[1:2], 3, []byte("..")), ErrBounds)
	require.ErrorIs(t, ReadAt(spans, make([]byte, 6), 0), ErrBounds, "nothing can be read from there")
	_, ok := Gather(nil, spans, 0, 6)
	require.False(t, ok)
}

func TestPlaceAtMissesAnInvalidatedRegion(t *testing.T) {
	spans, table, region := testSpans(t, nil)
	before := slices.Clone(region.Bytes(0, 16))
	require.NoError(t, table.Invalidate(context.Background(), region))
	require.ErrorIs(t, PlaceAt(spans, 0, numbered(20)), ErrInvalid)
	require.Equal(t, before, region.Bytes(0, 16), "the region is as it was")
	require.Equal(t, numbered(7), spans[0].Mem[2:9], "what came before it was placed")
	require.NoError(t, ReadAt(spans, make([]byte, 20), 0), "a work request still reads its own octets")
}

func TestSpansAllocateNothing(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	spans, _, _ := testSpans(t, nil)
	p, dst := numbered(18), make([][]byte, 0, 8)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = PlaceAt(spans, 1, p)
		_ = ReadAt(spans, p, 1)
		dst, _ = Gather(dst[:0], spans, 1, 18)
	}))
}

// BenchmarkPlaceAt places a small message into the one span that it has.
func BenchmarkPlaceAt(b *testing.B) {
	r, err := NewTable().Register(make([]byte, 64), Options{Access: LocalWrite})
	require.NoError(b, err)
	spans, p := []Span{{Region: r, Len: 64}}, make([]byte, 64)
	for b.Loop() {
		if err := PlaceAt(spans, 0, p); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOneSpanHasItsOwnBounds: a list of one is no more than that span, though its region,
// or its memory, goes on.
func TestOneSpanHasItsOwnBounds(t *testing.T) {
	p := newPeer(t)
	r := p.register(16, LocalWrite, 0)
	mem := make([]byte, 16)
	for what, c := range map[string]struct {
		list []Span
		all  []byte
	}{
		"a region": {[]Span{{Region: r, Off: 4, Len: 8}}, r.mem},
		"memory":   {[]Span{{Mem: mem[4:], Len: 8}}, mem},
	} {
		for off := range uint64(12) {
			for n := range 12 {
				clear(c.all)
				err := PlaceAt(c.list, off, numbered(n))
				want := make([]byte, 16)
				if off+uint64(n) <= 8 {
					require.NoError(t, err, "%s: %d octets at %d", what, n, off)
					copy(want[4+off:], numbered(n))
				} else {
					require.ErrorIs(t, err, ErrBounds, "%s: %d octets at %d", what, n, off)
				}
				require.Equal(t, want, c.all, "%s: %d octets at %d", what, n, off)

				copy(c.all, numbered(16))
				got := make([]byte, n)
				parts, ok := Gather(nil, c.list, off, n)
				if off+uint64(n) > 8 {
					require.ErrorIs(t, ReadAt(c.list, got, off), ErrBounds, what)
					require.False(t, ok, what)
					continue
				}
				require.NoError(t, ReadAt(c.list, got, off), what)
				require.Equal(t, numbered(16)[4+off:][:n], got, what)
				require.True(t, ok, what)
				require.Len(t, parts, min(n, 1), "%s: nothing is one piece less", what)
				require.Equal(t, got, append(make([]byte, 0, n), bytes.Join(parts, nil)...), what)
			}
		}
		_, ok := Gather(nil, c.list, 0, -1)
		require.False(t, ok)
	}
	require.ErrorIs(t, PlaceAt([]Span{{Region: r, Off: 0, Len: 8}}, ^uint64(0), numbered(2)), ErrBounds, "where the sum wraps")
	for _, none := range [][]Span{nil, {}} {
		require.ErrorIs(t, PlaceAt(none, 0, numbered(1)), ErrBounds, "a list of nothing")
		require.NoError(t, PlaceAt(none, 0, nil))
		_, ok := Gather(nil, none, 0, 1)
		require.False(t, ok)
	}
	require.Nil(t, r.Bytes(0, -1))
	require.Nil(t, r.Bytes(17, 0))
}
