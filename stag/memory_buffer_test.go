package stag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockedFile is a MemoryBuffer that records its calls.
type lockedFile struct {
	testFile
	calls  []string
	none   bool // Acquire returns nothing
	excess int  // octets that Acquire returns too many
	panics string
}

func (f *lockedFile) note(method string, off int64, n int, write bool) {
	f.calls = append(f.calls, fmt.Sprint(method, " ", off, " ", n, " ", write))
	if method == f.panics {
		panic(errors.New(method))
	}
}

func (f *lockedFile) Acquire(off int64, n int, write bool) ([]byte, error) {
	f.note("Acquire", off, n, write)
	if f.err != nil || f.none {
		return nil, f.err
	}
	return f.data[off:][:n+f.excess], nil
}

func (f *lockedFile) Release(off int64, n int, write bool) { f.note("Release", off, n, write) }

// newLocked registers 16 octets, which a hold keeps.
func newLocked(t *testing.T) (*lockedFile, *Region, *Table) {
	t.Helper()
	table, file := NewTable(), &lockedFile{testFile: testFile{data: numbered(16)}}
	r, err := table.RegisterBuffer(file, Options{Access: LocalWrite})
	require.NoError(t, err)
	return file, r, table
}

func TestMemoryBufferIsWrittenBetweenAcquireAndRelease(t *testing.T) {
	file, r, _ := newLocked(t)
	require.NoError(t, PlaceAt([]Span{{Region: r, Off: 2, Len: 10}}, 1, []byte("abc")))
	require.Equal(t, []string{"Acquire 3 3 true", "Release 3 3 true"}, file.calls)
	require.Equal(t, append(append(numbered(3), "abc"...), numbered(16)[6:]...), file.data)
}

// TestSizedBufferIsRegisteredAsWhatItIs, with the size that it had.
func TestSizedBufferIsRegisteredAsWhatItIs(t *testing.T) {
	fast, err := NewTable().Allocate(16, Options{Access: LocalWrite})
	require.NoError(t, err)
	file := &lockedFile{testFile: testFile{data: numbered(16)}}
	_, err = fast.PrepareBuffer(file, -1, LocalWrite, 0, nil)
	require.ErrorContains(t, err, "less than 0")
	r, err := fast.PrepareBuffer(file, 8, LocalWrite, 0, nil)
	require.NoError(t, err)
	require.EqualValues(t, 8, r.Len())
	require.NoError(t, r.Place(1, []byte("a")))
	require.Equal(t, []string{"Acquire 1 1 true", "Release 1 1 true"}, file.calls)
}

func TestMemoryBufferIsRead(t *testing.T) {
	file, r, _ := newLocked(t)
	list := []Span{{Region: r, Off: 2, Len: 10}}
	l, err := AcquireAt(list, 1, 4)
	require.NoError(t, err)
	require.Same(t, &file.data[3], &l.Mem[0], "the memory itself")
	require.Len(t, l.Mem, 4)
	require.Equal(t, []string{"Acquire 3 4 false"}, file.calls)
	require.NoError(t, l.Release())
	require.Equal(t, "Release 3 4 false", file.calls[1])

	p := make([]byte, 4)
	require.NoError(t, ReadAt(list, p, 1), "it can be read otherwise, too")
	require.Equal(t, numbered(16)[3:7], p)
	require.Len(t, file.calls, 2)
}

func TestOnlyOneMemoryBufferIsAcquired(t *testing.T) {
	_, r, table := newLocked(t)
	memory, err := table.Register(make([]byte, 16), Options{})
	require.NoError(t, err)
	file, err := table.RegisterBuffer(&testFile{data: make([]byte, 16)}, Options{})
	require.NoError(t, err)
	for name, list := range map[string][]Span{
		"memory of its own":    {{Mem: make([]byte, 8), Len: 8}},
		"a region of memory":   {{Region: memory, Len: 8}},
		"another Buffer":       {{Region: file, Len: 8}},
		"two spans":            {{Region: r, Len: 4}, {Region: r, Len: 4}},
		"more than there is":   {{Region: r, Len: 7}},
		"nothing in this list": {},
	} {
		l, err := AcquireAt(list, 0, 8)
		require.NoError(t, err, name)
		require.Nil(t, l.Mem, name)
	}
	_, err = AcquireAt([]Span{{Region: r, Off: 9, Len: 8}}, 0, 8)
	require.ErrorIs(t, err, ErrBounds, "beyond the region")
}

func TestMemoryBufferWithoutMemoryIsCalledOtherwise(t *testing.T) {
	file, r, _ := newLocked(t)
	file.none = true
	require.NoError(t, r.Place(4, []byte("abc")))
	require.Equal(t, []byte("abc"), file.data[4:7], "by WriteAt")
	l, err := AcquireAt([]Span{{Region: r, Len: 8}}, 0, 8)
	require.NoError(t, err)
	require.Nil(t, l.Mem)
	require.Equal(t, []string{"Acquire 4 3 true", "Acquire 0 8 false"}, file.calls, "and there is no Release")
}

// An atomicFile is a lockedFile whose 8 octets WriteAt writes as one.
type atomicFile struct{ lockedFile }

func (*atomicFile) Atomic() bool { return true }

func (f *atomicFile) WriteAt(p []byte, off int64) (int, error) {
	f.note("WriteAt", off, len(p), true)
	return f.lockedFile.WriteAt(p, off)
}

// TestAtomicOperationsCallAMemoryBuffer: its WriteAt is the method that it declares atomic.
func TestAtomicOperationsCallAMemoryBuffer(t *testing.T) {
	file := &atomicFile{lockedFile{testFile: testFile{data: make([]byte, 16)}}}
	table := NewTable()
	r, err := table.RegisterBuffer(file, Options{Access: LocalWrite})
	require.NoError(t, err)
	_, err = table.Update(r, 8, func(v uint64) uint64 { return v + 5 })
	require.NoError(t, err)
	require.NoError(t, table.Store(r, 0, 7))
	require.Equal(t, []string{"WriteAt 8 8 true", "WriteAt 0 8 true"}, file.calls)
	require.Equal(t, []uint64{7, 5}, []uint64{binary.NativeEndian.Uint64(file.data), binary.NativeEndian.Uint64(file.data[8:])})
}

func TestMemoryBufferThatFails(t *testing.T) {
	file, r, table := newLocked(t)
	whole := []Span{{Region: r, Len: 16}}
	file.err = errors.New("disk on fire")
	require.ErrorIs(t, r.Place(0, []byte("abc")), file.err)
	_, err := AcquireAt(whole, 0, 8)
	require.ErrorIs(t, err, file.err)
	require.Len(t, file.calls, 2, "nothing is released")

	file.err, file.excess = nil, 1
	before := bytes.Clone(file.data)
	require.ErrorContains(t, r.Place(0, []byte("abc")), "Acquire has returned 4 octets instead of 3")
	_, err = AcquireAt(whole, 0, 8)
	require.ErrorContains(t, err, "Acquire has returned 9 octets instead of 8")
	require.Equal(t, before, file.data)
	require.Equal(t, []string{"Acquire 0 3 true", "Release 0 3 true", "Acquire 0 8 false", "Release 0 8 false"}, file.calls[2:])
	require.NoError(t, table.Close(context.Background(), r), "no pin is left over")
}

func TestMemoryBufferThatPanics(t *testing.T) {
	for _, method := range []string{"Acquire", "Release"} {
		file, r, table := newLocked(t)
		var p *PanicError
		file.panics = method
		require.ErrorAs(t, PlaceAt([]Span{{Region: r, Len: 16}}, 0, []byte("abc")), &p)
		require.Equal(t, method, p.Method)
		l, err := AcquireAt([]Span{{Region: r, Len: 16}}, 0, 8)
		if method == "Release" {
			require.NoError(t, err)
			err = l.Release()
		}
		require.ErrorAs(t, err, &p)
		require.Equal(t, method, p.Method)
		require.NoError(t, table.Close(context.Background(), r), "no pin is left over")
	}
}

// TestMemoryBufferKnowsThatItIsInside: its methods must not wait for placements either.
func TestMemoryBufferKnowsThatItIsInside(t *testing.T) {
	b := &insideBuffer{}
	r, err := NewTable().RegisterBuffer(b, Options{Access: LocalWrite})
	require.NoError(t, err)
	require.NoError(t, r.Place(0, []byte("abc")))
	require.Equal(t, []bool{true, true}, b.inside)
	require.False(t, InBuffer())
}

type insideBuffer struct {
	testFile
	inside []bool
}

func (b *insideBuffer) Size() int64 { return 8 }

func (b *insideBuffer) Acquire(_ int64, n int, _ bool) ([]byte, error) {
	b.inside = append(b.inside, InBuffer())
	return make([]byte, n), nil
}

func (b *insideBuffer) Release(int64, int, bool) { b.inside = append(b.inside, InBuffer()) }
