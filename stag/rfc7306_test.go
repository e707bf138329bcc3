package stag

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// update adds n by an atomic operation of a peer, and returns the value before.
func (p *testPeer) update(s STag, to, n uint64) uint64 {
	r, off, v := p.table.Pin(p.scope, s, RemoteAtomic, to, AtomicLen)
	require.Equal(p.t, None, v)
	defer r.Unpin()
	require.True(p.t, r.Aligned(off))
	old, err := p.table.Update(r, off, func(v uint64) uint64 { return v + n })
	require.NoError(p.t, err)
	return old
}

func TestEXT_43_TheTargetHasTheByteOrderOfTheHost(t *testing.T) {
	p := newPeer(t)
	r := p.register(24, LocalWrite|RemoteAtomic, 0)
	word := (*uint64)(unsafe.Pointer(&r.mem[8]))
	*word = 0x0102030405060708
	require.Equal(t, uint64(0x0102030405060708), p.update(r.STag(), 8, 1), "the value is what the host reads")
	require.Equal(t, uint64(0x0102030405060709), *word, "and so is the result")
	require.Equal(t, make([]byte, 8), r.mem[:8], "nothing before it changes")
	require.Equal(t, make([]byte, 8), r.mem[16:], "nothing after it changes")
}

// TestEXT_43_BufferHasTheByteOrderOfTheHost: a file may be mapped by one region and be the
// Buffer of another.
func TestEXT_43_BufferHasTheByteOrderOfTheHost(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, LocalWrite|RemoteAtomic, 0)
	*(*uint64)(unsafe.Pointer(&r.mem[0])) = 0x0102030405060708
	file := &testFile{data: append([]byte(nil), r.mem...)}
	b, err := p.table.RegisterBuffer(file, Options{Access: LocalWrite | RemoteAtomic, Scope: p.scope})
	require.NoError(t, err)
	require.Equal(t, uint64(0x0102030405060708), p.update(b.STag(), 0, 1), "the value is what the host reads")
	p.update(r.STag(), 0, 1)
	require.Equal(t, r.mem, file.data, "and the result has the octets that it has in memory")
}

func TestEXT_44_47_TheAddressCountsAndNotTheTO(t *testing.T) {
	p := newPeer(t)
	mem := make([]byte, 64)
	for skip := range 8 {
		r, err := p.table.Register(mem[skip:], Options{Access: LocalWrite | RemoteAtomic, BaseTO: 0x1003, Scope: p.scope})
		require.NoError(t, err)
		for off := range uint64(16) {
			require.Equal(t, (uint64(skip)+off)%8 == 0, r.Aligned(off), "octet %d of memory that begins %d octets after an aligned address", off, skip)
		}
	}
	file, err := p.table.RegisterBuffer(&testFile{data: make([]byte, 24)}, Options{Access: LocalWrite | RemoteAtomic, BaseTO: 5})
	require.NoError(t, err)
	for off := range uint64(16) {
		require.Equal(t, off%8 == 0, file.Aligned(off), "in a Buffer the position counts")
	}
}

func TestEXT_44_47_WindowsAreAlignedAsWhatTheyAreBoundTo(t *testing.T) {
	scope := Scope{PD: 1, Stream: 7}
	table := NewTable()
	rights := Options{Access: LocalWrite | MWBind, Scope: Scope{PD: 1}}
	memory, err := table.Register(make([]byte, 64), rights)
	require.NoError(t, err)
	data := make([]byte, 64)
	buffer, err := table.RegisterBuffer(&testFile{data: data}, rights)
	require.NoError(t, err)
	for _, on := range []*Region{memory, buffer} {
		w, err := table.AllocateWindow(1)
		require.NoError(t, err)
		bound, err := w.Prepare(40, RemoteAtomic, 0, nil)
		require.NoError(t, err)
		require.NoError(t, table.Bind(scope, new(Windows), bound, on, 3))
		require.False(t, bound.Aligned(0))
		require.True(t, bound.Aligned(5), "octet 8 of what it is bound to")
		_, err = table.Update(bound, 5, func(v uint64) uint64 { return v + 7 })
		require.NoError(t, err)
	}
	require.Equal(t, uint64(7), binary.NativeEndian.Uint64(data[8:]))
	require.Equal(t, uint64(7), *(*uint64)(unsafe.Pointer(&memory.mem[8])))
}

// wantAtomic has several peers and the host add to one integer at a time.
func wantAtomic(t *testing.T, table *Table, regions []*Region, local *uint64) uint64 {
	const each, workers = 5000, 8
	var all sync.WaitGroup
	for i := range workers {
		r := regions[i%len(regions)]
		all.Go(func() {
			for range each {
				_, err := table.Update(r, 8, func(v uint64) uint64 { return v + 1 })
				require.NoError(t, err)
				if local != nil {
					atomic.AddUint64(local, 1)
				}
			}
		})
	}
	all.Wait()
	if local != nil {
		return 2 * each * workers
	}
	return each * workers
}

// TestUpdateBeginsAgainWhenTheHostHasWritten between its look at the value and its change.
func TestUpdateBeginsAgainWhenTheHostHasWritten(t *testing.T) {
	table := NewTable()
	mem := make([]byte, 8)
	word := (*uint64)(unsafe.Pointer(&mem[0]))
	r, err := table.Register(mem, Options{Access: LocalWrite | RemoteAtomic})
	require.NoError(t, err)
	asked := 0
	old, err := table.Update(r, 0, func(v uint64) uint64 {
		if asked++; asked == 1 {
			atomic.StoreUint64(word, 40)
		}
		return v + 2
	})
	require.NoError(t, err)
	require.Equal(t, uint64(40), old)
	require.Equal(t, uint64(42), *word)
}

func TestEXT_48_49_UpdatesDoNotInterleave(t *testing.T) {
	table := NewTable()
	mem := make([]byte, 32)
	word := (*uint64)(unsafe.Pointer(&mem[8]))
	var regions []*Region
	for range 3 { // the same memory under several STags
		r, err := table.Register(mem, Options{Access: LocalWrite | RemoteAtomic})
		require.NoError(t, err)
		regions = append(regions, r)
	}
	want := wantAtomic(t, table, regions, word)
	require.Equal(t, want, *word, "nothing is lost, neither of peers nor of the host")
}

func TestEXT_48_49_UpdatesOfBuffersDoNotInterleave(t *testing.T) {
	table := NewTable()
	file := &testFile{data: make([]byte, 32)} // not safe for concurrent use: the race detector watches, too
	var regions []*Region
	for range 3 {
		r, err := table.RegisterBuffer(file, Options{Access: LocalWrite | RemoteAtomic})
		require.NoError(t, err)
		regions = append(regions, r)
	}
	want := wantAtomic(t, table, regions, nil)
	require.Equal(t, want, binary.NativeEndian.Uint64(file.data[8:]), "nothing is lost")
}

func TestUpdateThatChangesNothingWritesNothing(t *testing.T) {
	table := NewTable()
	dirty := 0
	o := Options{Access: LocalWrite | RemoteAtomic, Dirty: func(off, n int64) {
		dirty++
		require.Equal(t, []int64{8, 8}, []int64{off, n})
	}}
	memory, err := table.Register(make([]byte, 16), o)
	require.NoError(t, err)
	buffer, err := table.RegisterBuffer(&testFile{data: make([]byte, 16)}, o)
	require.NoError(t, err)
	for _, r := range []*Region{memory, buffer} {
		dirty = 0
		same := func(v uint64) uint64 { return v }
		v, err := table.Update(r, 8, same)
		require.NoError(t, err)
		require.Zero(t, v)
		require.Zero(t, dirty)
		_, err = table.Update(r, 8, func(uint64) uint64 { return 7 })
		require.NoError(t, err)
		require.Equal(t, 1, dirty, "a change is told")
		v, err = table.Update(r, 8, same)
		require.NoError(t, err)
		require.Equal(t, uint64(7), v)
	}
}

func TestUpdateFails(t *testing.T) {
	table := NewTable()
	errFile := errors.New("worn out")
	add := func(v uint64) uint64 { return v + 1 }
	memory, err := table.Register(make([]byte, 16), Options{Access: LocalWrite | RemoteAtomic})
	require.NoError(t, err)
	for _, off := range []uint64{9, 16, ^uint64(0), ^uint64(0) - 7} {
		_, err := table.Update(memory, off, add)
		require.ErrorIs(t, err, ErrBounds)
	}
	file := &testFile{data: make([]byte, 16)}
	buffer, err := table.RegisterBuffer(file, Options{Access: LocalWrite | RemoteAtomic})
	require.NoError(t, err)
	_, err = table.Update(buffer, 16, add)
	require.ErrorIs(t, err, ErrBounds)
	file.err = errFile
	_, err = table.Update(buffer, 8, add)
	require.ErrorIs(t, err, errFile)
	file.err = nil
	done := make(chan error, 1)
	go func() {
		_, err := table.Update(buffer, 8, add)
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(t, err, "an error leaves no lock behind")
	case <-time.After(10 * time.Second):
		require.Fail(t, "an error has left a lock behind")
	}
}

func TestUpdateDoesNotAllocate(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	table := NewTable()
	o := Options{Access: LocalWrite | RemoteAtomic}
	memory, err := table.Register(make([]byte, 16), o)
	require.NoError(t, err)
	buffer, err := table.RegisterBuffer(&testFile{data: make([]byte, 32)}, o)
	require.NoError(t, err)
	for _, r := range []*Region{memory, buffer} {
		n := uint64(3)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, _ = table.Update(r, 8, func(v uint64) uint64 { return v + n })
		}))
	}
}

// A watchedBuffer asks something whenever it is used.
type watchedBuffer struct {
	testFile
	used                  func(what string)
	readFails, writeFails error
}

func (b *watchedBuffer) ReadAt(p []byte, off int64) (int, error) {
	b.used("read")
	if b.readFails != nil {
		return 0, b.readFails
	}
	return b.testFile.ReadAt(p, off)
}

func (b *watchedBuffer) WriteAt(p []byte, off int64) (int, error) {
	b.used("written")
	if b.writeFails != nil {
		return 0, b.writeFails
	}
	return b.testFile.WriteAt(p, off)
}

// TestEXT_48_UpdatesOfBuffersHoldTheLock: from before the octets are read until after they
// are written, and an Update that finds the lock taken waits for it.
func TestEXT_48_UpdatesOfBuffersHoldTheLock(t *testing.T) {
	p := newPeer(t)
	var used []string
	file := &watchedBuffer{testFile: testFile{data: make([]byte, 16)}}
	file.used = func(what string) {
		used = append(used, what)
		require.False(t, p.table.buffers.mu.TryLock(), "%s with the lock", what)
	}
	r, err := p.table.RegisterBuffer(file, Options{Access: LocalWrite | RemoteAtomic, Scope: p.scope})
	require.NoError(t, err)
	p.update(r.STag(), 8, 1)
	require.Equal(t, []string{"read", "written"}, used)
	require.True(t, p.table.buffers.mu.TryLock(), "it is free afterwards, and taken by another now")

	done := make(chan struct{})
	go func() {
		defer close(done)
		p.update(r.STag(), 8, 1)
	}()
	select {
	case <-done:
		require.Fail(t, "it did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	p.table.buffers.mu.Unlock()
	<-done
	require.Equal(t, uint64(2), binary.NativeEndian.Uint64(file.data[8:]))
}

// TestUpdateTellsWhatTheBufferFailed, and releases its lock.
func TestUpdateTellsWhatTheBufferFailed(t *testing.T) {
	p := newPeer(t)
	oops := errors.New("oops")
	file := &watchedBuffer{testFile: testFile{data: make([]byte, 16)}, used: func(string) {}, readFails: oops}
	r, err := p.table.RegisterBuffer(file, Options{Access: LocalWrite | RemoteAtomic, Scope: p.scope})
	require.NoError(t, err)
	add := func(v uint64) uint64 { return v + 1 }
	_, err = p.table.Update(r, 8, add)
	require.ErrorIs(t, err, oops, "in reading")
	file.readFails, file.writeFails = nil, oops
	_, err = p.table.Update(r, 8, add)
	require.ErrorIs(t, err, oops, "in writing")
	file.writeFails = nil
	_, err = p.table.Update(r, 8, add)
	require.NoError(t, err)
	_, err = p.table.Update(r, 9, add)
	require.ErrorIs(t, err, ErrBounds)
}
