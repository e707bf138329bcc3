package stag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRegionKeepsWhatItWasGiven(t *testing.T) {
	p := newPeer(t)
	o := Options{Access: everyRight, BaseTO: 77, Scope: Scope{PD: 3, Stream: 4}, Flusher: flusher{}}
	r, err := p.table.Register(make([]byte, 5), o)
	require.NoError(t, err)
	require.Equal(t, o, Options{Access: r.Access(), BaseTO: r.BaseTO(), Scope: r.Scope(), Flusher: r.Flusher()})
	require.Equal(t, uint64(5), r.Len())
	require.NotZero(t, r.STag())
	require.Nil(t, p.register(1, 0, 0).Flusher())
}

type flusher struct{}

func (flusher) Flush(context.Context, int64, int64) error { return nil }

func TestBytesAreTheRegionsOwn(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, LocalWrite, 0)
	b := r.Bytes(2, 3)
	require.Len(t, b, 3)
	require.Equal(t, 3, cap(b), "an append cannot run into the neighbour")
	b[0] = 9
	require.Equal(t, byte(9), r.mem[2])
	require.Empty(t, r.Bytes(8, 0))
	for _, c := range []struct {
		off uint64
		n   int
	}{{0, 9}, {8, 1}, {9, 0}, {^uint64(0), 1}, {^uint64(0), 2}, {0, -1}} {
		require.Nil(t, r.Bytes(c.off, c.n), "%d octets at %d", c.n, c.off)
	}
	file, err := p.table.RegisterBuffer(&testFile{data: make([]byte, 8)}, Options{})
	require.NoError(t, err)
	require.Nil(t, file.Bytes(0, 1), "a Buffer has no octets in memory")
}

// TestPlacementsAreWrittenThrough, but not atomic operations, which hold a lock.
func TestPlacementsAreWrittenThrough(t *testing.T) {
	table := NewTable()
	var told []string
	tells := func(what string) func(off, n int64) {
		return func(off, n int64) { told = append(told, fmt.Sprint(what, " ", off, " ", n)) }
	}
	o := Options{Access: LocalWrite | MWBind, Dirty: tells("dirty"), Through: tells("through"), Scope: Scope{PD: 1}}
	memory, err := table.Register(make([]byte, 16), o)
	require.NoError(t, err)
	file := &testFile{data: make([]byte, 16)}
	buffer, err := table.RegisterBuffer(file, o)
	require.NoError(t, err)
	ahead, err := table.Allocate(16, o)
	require.NoError(t, err)
	fast, err := ahead.Prepare(make([]byte, 16), LocalWrite|MWBind, 0, nil)
	require.NoError(t, err)
	alice := Scope{PD: 1, Stream: 1}
	require.NoError(t, table.Enable(alice, fast))
	for _, r := range []*Region{memory, buffer, fast} {
		told = nil
		require.NoError(t, r.Place(1, numbered(3)))
		r.MarkWritten(r.Began(), 4, 2)
		_, err = table.Update(r, 8, func(v uint64) uint64 { return v + 1 })
		require.NoError(t, err)
		require.NoError(t, table.Store(r, 8, 1))
		require.Equal(t, []string{"dirty 1 3", "through 1 3", "dirty 4 2", "through 4 2", "dirty 8 8", "dirty 8 8"}, told)
		w, err := table.AllocateWindow(1)
		require.NoError(t, err)
		bound, err := w.Prepare(8, RemoteWrite, 0, nil)
		require.NoError(t, err)
		require.NoError(t, table.Bind(alice, new(Windows), bound, r, 8))
		told = nil
		require.NoError(t, bound.Place(1, numbered(3)))
		require.Equal(t, []string{"dirty 9 3", "through 9 3"}, told)
	}
	told = nil
	file.err = io.ErrShortWrite
	require.ErrorIs(t, buffer.Place(1, numbered(3)), io.ErrShortWrite)
	require.Equal(t, []string{"dirty 1 3", "through 1 3"}, told, "a failed write may have changed any of the octets")
}

func TestPlaceTellsWhatBecameDirty(t *testing.T) {
	type run struct{ off, n int64 }
	table := NewTable()
	var dirty []run
	o := Options{Access: LocalWrite, Dirty: func(off, n int64) { dirty = append(dirty, run{off, n}) }}
	memory, err := table.Register(make([]byte, 8), o)
	require.NoError(t, err)
	file := &testFile{data: make([]byte, 8)}
	buffer, err := table.RegisterBuffer(file, o)
	require.NoError(t, err)
	for _, r := range []*Region{memory, buffer} {
		dirty = nil
		require.NoError(t, r.Place(1, numbered(3)))
		require.NoError(t, r.Place(8, nil))
		require.ErrorIs(t, r.Place(6, numbered(3)), ErrBounds)
		require.ErrorIs(t, r.Place(^uint64(0), numbered(3)), ErrBounds)
		require.Equal(t, []run{{1, 3}}, dirty, "one placement of three octets took place")
		got := make([]byte, 8)
		require.NoError(t, r.ReadInto(got, 0))
		require.Equal(t, []byte{0, 1, 2, 3, 0, 0, 0, 0}, got)
		require.ErrorIs(t, r.ReadInto(got, 1), ErrBounds)
		require.NoError(t, r.ReadInto(nil, 8))
	}
	dirty = nil
	file.err = errors.New("half written")
	require.ErrorIs(t, buffer.Place(0, numbered(8)), file.err)
	require.Equal(t, []run{{0, 8}}, dirty, "a write that failed may have changed every octet")
}

func TestCMT_30_PlaceWriteTellsOfWhatFailed(t *testing.T) {
	type failure struct {
		off, n int64
		err    error
	}
	var failed []failure
	file := &testFile{data: make([]byte, 8)}
	table := NewTable()
	r, err := table.RegisterBuffer(file, Options{
		Access: LocalWrite,
		Failed: func(off, n int64, err error) { failed = append(failed, failure{off, n, err}) },
	})
	require.NoError(t, err)
	require.NoError(t, r.PlaceWrite(1, numbered(3)))
	require.Empty(t, failed)
	require.ErrorIs(t, r.PlaceWrite(6, numbered(3)), ErrBounds, "that is no failure of the buffer")
	file.err = errors.New("half written")
	require.NoError(t, r.PlaceWrite(2, numbered(4)))
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0].err, file.err)
	require.Equal(t, []int64{2, 4}, []int64{failed[0].off, failed[0].n})
	require.ErrorIs(t, r.Place(2, numbered(4)), file.err, "the responder reports it to the peer")

	plain, err := table.RegisterBuffer(file, Options{Access: LocalWrite})
	require.NoError(t, err)
	require.ErrorIs(t, plain.PlaceWrite(2, numbered(4)), file.err, "without an owner to tell it is an error")
}

// A watching is a Watch that records what it is told. Each placement begins at a time of its
// own.
type watching struct {
	now  uint64
	told []string
}

func (w *watching) Began() uint64 {
	w.now++
	return w.now
}

func (w *watching) Wrote(began uint64, off, n int64, err error) {
	w.told = append(w.told, fmt.Sprint(began, off, n, err != nil))
}

func TestCMT_30_WatchIsToldOfAllThatIsWritten(t *testing.T) {
	table := NewTable()
	file := &testFile{data: make([]byte, 16)}
	var w watching
	o := Options{Access: LocalWrite, Watch: &w}
	memory, err := table.Register(make([]byte, 16), o)
	require.NoError(t, err)
	buffer, err := table.RegisterBuffer(file, o)
	require.NoError(t, err)
	for _, r := range []*Region{memory, buffer} {
		w = watching{}
		require.NoError(t, r.Place(1, numbered(3)))
		require.NoError(t, r.PlaceWrite(2, numbered(4)))
		_, err = table.Update(r, 8, func(v uint64) uint64 { return v + 1 })
		require.NoError(t, err)
		_, err = table.Update(r, 8, func(v uint64) uint64 { return v })
		require.NoError(t, err)
		require.Equal(t, []string{"1 1 3 false", "2 2 4 false", "3 8 8 false"}, w.told)
		w = watching{}
		require.NoError(t, table.Store(r, 8, 1), "which is there already")
		require.Equal(t, []string{"1 8 8 false"}, w.told)
		require.ErrorIs(t, table.Store(r, 16, 1), ErrBounds)
	}
	w = watching{}
	file.err = errors.New("half written")
	require.Error(t, buffer.PlaceWrite(1, numbered(3)))
	require.Equal(t, []string{"1 1 3 true"}, w.told)
	began := memory.Began()
	memory.MarkWritten(began, 3, 2)
	require.Equal(t, "2 3 2 false", w.told[1])
}

// TestCMT_13_16_OctetsOfWhichTheFlusherHasNotHeard: it has panicked. The writer learns that, and so does the Watch: a Flush that
// succeeds may omit them.
func TestCMT_13_16_OctetsOfWhichTheFlusherHasNotHeard(t *testing.T) {
	table := NewTable()
	file := &testFile{data: make([]byte, 16)}
	var w watching
	oops := errors.New("oops")
	o := Options{Access: LocalWrite, Watch: &w, Dirty: func(int64, int64) { panic(oops) }}
	memory, err := table.Register(make([]byte, 16), o)
	require.NoError(t, err)
	buffer, err := table.RegisterBuffer(file, o)
	require.NoError(t, err)
	for _, r := range []*Region{memory, buffer} {
		w = watching{}
		require.ErrorIs(t, r.Place(1, numbered(3)), oops)
		require.ErrorIs(t, r.PlaceWrite(2, numbered(4)), oops)
		_, err := table.Update(r, 8, func(v uint64) uint64 { return v + 1 })
		require.ErrorIs(t, err, oops)
		err = table.Store(r, 8, 1)
		require.ErrorIs(t, err, oops)
		require.ErrorContains(t, err, "the Flusher's Touched panicked: oops")
		r.MarkWritten(r.Began(), 3, 2)
		require.Equal(t, []string{"1 1 3 true", "2 2 4 true", "3 8 8 true", "4 8 8 true", "5 3 2 true"}, w.told)
	}
	file.err = errors.New("half written")
	require.ErrorIs(t, buffer.Place(0, numbered(8)), file.err, "the first error counts")
}

// TestFailedThatPanics: the RDMA Write of the peer ends its stream.
func TestFailedThatPanics(t *testing.T) {
	file := &testFile{data: numbered(8), err: errors.New("half written")}
	r, err := NewTable().RegisterBuffer(file, Options{Access: LocalWrite, Failed: func(int64, int64, error) { panic("oops") }})
	require.NoError(t, err)
	var p *PanicError
	require.ErrorAs(t, r.PlaceWrite(0, numbered(8)), &p)
	require.Equal(t, "Failed", p.Method)
}

func TestBufferThatFails(t *testing.T) {
	table := NewTable()
	file := &testFile{data: numbered(8)}
	r, err := table.RegisterBuffer(file, Options{Access: LocalWrite})
	require.NoError(t, err)
	p := make([]byte, 4)
	require.NoError(t, r.ReadInto(p, 4), "io.EOF with all octets is no error")

	file.cut = 1
	require.ErrorIs(t, r.ReadInto(p, 0), io.ErrUnexpectedEOF, "less than was asked for")
	require.ErrorIs(t, r.Place(0, p), io.ErrShortWrite)

	file.err = io.EOF
	require.ErrorIs(t, r.ReadInto(p, 0), io.ErrUnexpectedEOF, "a file that shrank is not a graceful end")
	file.err = errors.New("disk on fire")
	require.ErrorIs(t, r.ReadInto(p, 0), file.err)
	require.ErrorIs(t, r.Place(0, p), file.err)
	require.ErrorIs(t, PlaceAt([]Span{{Region: r, Len: 8}}, 0, p), file.err)
	require.ErrorIs(t, ReadAt([]Span{{Region: r, Len: 8}}, p, 0), file.err)
	require.NoError(t, table.Close(context.Background(), r), "no pin is left over")
}
