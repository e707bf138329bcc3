package stag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

func TestPinFindsTheOctets(t *testing.T) {
	table := NewTable()
	mem := numbered(64)
	r, err := table.Register(mem, Options{Access: LocalWrite | RemoteWrite, BaseTO: 1000, Scope: Scope{PD: 1}})
	require.NoError(t, err)

	got, off, v := table.Pin(Scope{PD: 1, Stream: 7}, r.STag(), RemoteWrite, 1010, 4)
	require.Equal(t, None, v)
	require.Same(t, r, got)
	require.Equal(t, uint64(10), off, "the offset counts from the first octet")
	require.Equal(t, numbered(64)[10:14], r.Bytes(off, 4))
	require.NoError(t, r.Place(off, []byte{0xaa}))
	require.Equal(t, byte(0xaa), mem[10])
	r.Unpin()
}

func TestPinAllocatesNothing(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	table := NewTable()
	r, err := table.Register(make([]byte, 64), Options{Access: LocalWrite | RemoteWrite, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	p := numbered(64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		hit, off, v := table.Pin(Scope{PD: 1, Stream: 7}, r.STag(), RemoteWrite, 0, 64)
		if v != None || hit.Place(off, p) != nil {
			panic(v)
		}
		hit.Unpin()
		_, _, _ = table.Pin(Scope{PD: 1, Stream: 7}, r.STag(), RemoteRead, 0, 64)
	}))
}

func BenchmarkPin(b *testing.B) {
	table := NewTable()
	all := make([]*Region, 1000)
	for i := range all {
		all[i], _ = table.Register(make([]byte, 64), Options{Access: RemoteRead, Scope: Scope{PD: 1}})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r, _, v := table.Pin(Scope{PD: 1, Stream: 7}, all[i%len(all)].stag, RemoteRead, 8, 8)
		if v != None {
			b.Fatal(v)
		}
		r.Unpin()
	}
}
