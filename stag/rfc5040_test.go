package stag

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RFC 5040 section 8.1.1 (1).
func TestRDMAP_120_AnotherPDHasNoAccess(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	p.wantAllowed("the PD of the region has access", r)
	p.as(Scope{PD: 2, Stream: 7}).wantRefused("the same stream number of another PD has none", r, NotAssociated)
	p.as(Scope{PD: 0, Stream: 7}).wantRefused("PD 0 is no exception", r, NotAssociated)
}

// RFC 5040 section 8.1.1 (2).
func TestRDMAP_121_SingleStreamSTagIsUselessElsewhere(t *testing.T) {
	p := newPeer(t)
	r := p.registerFor(p.scope, 8, everyRight, 0)
	p.wantAllowed("the stream of the region has access", r)
	p.as(Scope{PD: 1, Stream: 8}).wantRefused("another stream of the PD has none", r, NotAssociated)
	p.as(Scope{PD: 2, Stream: 7}).wantRefused("the same stream number of another PD has none", r, NotAssociated)
}

// RFC 5040 section 8.1.1 (3).
func TestRDMAP_122_BoundsAreOctetGranular(t *testing.T) {
	const base, size = 1000, 24
	p := newPeer(t)
	r := p.register(size, everyRight, base)
	for _, want := range []Access{LocalWrite, RemoteWrite, RemoteRead} {
		for to := uint64(base - 4); to < base+size+4; to++ {
			for n := 1; n < size+4; n++ {
				expect := Bounds
				if to >= base && to+uint64(n) <= base+size {
					expect = None
				}
				require.Equal(t, expect, p.try(r.STag(), want, to, n), "%v of %d octets at %d", want, n, to)
			}
		}
	}
}

// RFC 5040 section 8.1.1 (4).
func TestRDMAP_123_RangeIsBoundAndRevoked(t *testing.T) {
	p := newPeer(t)
	mem := make([]byte, 64)
	low, err := p.table.Register(mem[:32], Options{Access: everyRight, BaseTO: 5, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	require.Equal(t, None, p.try(low.STag(), RemoteWrite, 5+31, 1), "the STag stands for the range it was bound to")
	require.Equal(t, Bounds, p.try(low.STag(), RemoteWrite, 5+32, 1), "and for no more")
	p.invalidate(low)
	p.wantRefused("the binding is revoked", low, InvalidSTag)
	p.close(low)
	p.wantRefused("a closed region is unknown", low, InvalidSTag)

	again, err := p.table.Register(mem[16:], Options{Access: everyRight, BaseTO: 900, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	p.wantAllowed("the octets can be bound again, elsewhere", again)
	p.wantRefused("under another STag only", low, InvalidSTag)
}

// RFC 5040 section 8.1.1 (5).
func TestRDMAP_124_ARCH_20_32_ReadAndWriteAreGrantedOneByOne(t *testing.T) {
	p := newPeer(t)
	for _, granted := range []Access{
		0, LocalWrite, RemoteRead, LocalWrite | RemoteRead, LocalWrite | RemoteWrite, everyRight,
	} {
		r := p.register(8, granted, 0)
		for _, want := range []Access{LocalWrite, RemoteRead, RemoteWrite, RemoteAtomic, RemoteRead | RemoteWrite} {
			expect := AccessDenied
			if granted&want == want {
				expect = None
			}
			require.Equal(t, expect, p.try(r.STag(), want, 0, 1), "region with %v, access with %v", granted, want)
		}
		p.invalidate(r)
		p.wantRefused("every right is revoked together", r, InvalidSTag)
	}
}

// RFC 5040 section 8.1.1 (6).
func TestRDMAP_125_NothingIsPlacedAfterRevocation(t *testing.T) {
	const writers, each = 2, 4096
	p := newPeer(t)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		r := p.register(writers*each, everyRight, 0)
		var running sync.WaitGroup
		started := make(chan struct{}, writers)
		for w := range writers {
			running.Go(func() { p.flood(r.STag(), uint64(w*each), each, started) })
		}
		for range writers {
			<-started
		}
		p.invalidate(r)
		// From here on the race detector reports any write, and so do the octets.
		clear(r.mem)
		running.Wait()
		require.Equal(t, make([]byte, writers*each), r.mem, "no octet was placed after Invalidate returned")
		p.close(r)
	}
}

// flood writes n octets at the offset, again and again until the STag is invalid.
func (p *testPeer) flood(s STag, to uint64, n int, started chan<- struct{}) {
	payload := numbered(n)
	for i := 0; ; i++ {
		r, off, v := p.table.Pin(p.scope, s, RemoteWrite, to, n)
		if i == 0 {
			started <- struct{}{}
		}
		if v != None {
			return
		}
		_ = r.Place(off, payload)
		r.Unpin()
	}
}

// RFC 5040 section 8.1.1 (7).
func TestRDMAP_126_SharedSTagIsNotInvalidatedRemotely(t *testing.T) {
	p := newPeer(t)
	shared := p.register(8, everyRight, 0)
	require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(p.scope, shared.STag(), true))
	p.wantAllowed("the shared STag lives on", shared)

	own := p.registerFor(p.scope, 8, everyRight, 0)
	require.Equal(t, None, p.table.InvalidateSTag(p.scope, own.STag(), true))
	p.wantRefused("the STag of this stream alone is invalidated", own, InvalidSTag)
}

// RFC 5040 section 8.1.1 (8). The bounds are six standard deviations wide.
func TestRDMAP_127_STagsAreHardToPredict(t *testing.T) {
	const n = 100_000
	table := NewTable()
	all := make([]STag, n)
	seen := make(map[uint32]bool, n)
	for i := range all {
		s, err := table.draw()
		require.NoError(t, err)
		all[i] = s
		seen[s.Index()] = true
	}

	var bits [32]int
	var high, low [16]int
	ascents, repeats := 0, 0
	for i, s := range all {
		for b := range bits {
			bits[b] += int(s>>b) & 1
		}
		high[s>>28]++
		low[s&15]++
		if i > 0 && s > all[i-1] {
			ascents++
		}
		if i > 1 && s-all[i-1] == all[i-1]-all[i-2] {
			repeats++
		}
	}
	near := func(what string, got, samples int, p float64) {
		t.Helper()
		mean := float64(samples) * p
		require.InDelta(t, mean, got, 6*math.Sqrt(mean*(1-p)), what)
	}
	for b := range bits {
		near("every bit is set half of the time", bits[b], n, 0.5)
	}
	for i := range 16 {
		near("high values are spread evenly", high[i], n, 1.0/16)
		near("keys are spread evenly", low[i], n, 1.0/16)
	}
	require.InDelta(t, n/2, ascents, 6*math.Sqrt(n/12.0), "values rise as often as they fall")
	require.Less(t, repeats, 3, "no step is taken twice")
	require.Greater(t, len(seen), n-600, "indices collide as rarely as chance has it")
}

// TestRDMAP_127_STagsComeFromTheRandomnessOfTheSystem: octet for octet from crypto/rand,
// keys included, and not from a generator that an attacker could run, too.
func TestRDMAP_127_STagsComeFromTheRandomnessOfTheSystem(t *testing.T) {
	var octets []byte
	for i := range uint32(10) {
		octets = binary.BigEndian.AppendUint32(octets, 0x9e3779b9*(i+1))
	}
	source := bytes.NewReader(append(octets, 0x77, 0x77, 0x77, 0x77, 0x55))
	system := rand.Reader
	rand.Reader = source
	defer func() { rand.Reader = system }()
	table := NewTable()
	var got []byte
	for range 10 {
		r, err := table.Register(make([]byte, 1), Options{})
		require.NoError(t, err)
		got = binary.BigEndian.AppendUint32(got, uint32(r.STag()))
	}
	require.Equal(t, octets, got)
	b, err := table.Allocate(8, Options{})
	require.NoError(t, err)
	require.Equal(t, 1, source.Len())
	_, err = b.Prepare(make([]byte, 8), 0, 0, nil)
	require.NoError(t, err)
	require.Zero(t, source.Len(), "and a key is drawn for every enable")
}

// TestRDMAP_127_NoTwoProcessesDrawTheSameSTags: nor do two tables of one.
func TestRDMAP_127_NoTwoProcessesDrawTheSameSTags(t *testing.T) {
	const n, shows = 8, "IWARP_TEST_SHOW_STAGS"
	draw := func() (s string) {
		table := NewTable()
		for range n {
			r, err := table.Register(make([]byte, 1), Options{})
			require.NoError(t, err)
			s += r.STag().String() + "\n"
		}
		return s
	}
	if os.Getenv(shows) != "" {
		_, _ = os.Stderr.WriteString(draw())
		return
	}
	seen := map[string]bool{draw(): true, draw(): true}
	for range 2 {
		child := exec.Command(os.Args[0], "-test.run=^TestRDMAP_127_NoTwoProcessesDrawTheSameSTags$")
		child.Env = append(os.Environ(), shows+"=1")
		var out bytes.Buffer
		child.Stderr = &out
		require.NoError(t, child.Run())
		require.Equal(t, n, strings.Count(out.String(), "\n"), out.String())
		seen[out.String()] = true
	}
	require.Len(t, seen, 4, "256 bits that chance makes different")
}

// TestRDMAP_127_ReuseIsSlow: an index that was given back is not drawn again before
// 65,536 others have been, and a key of an index not before 128 others.
func TestRDMAP_127_ReuseIsSlow(t *testing.T) {
	table := NewTable()
	r, err := table.Register(make([]byte, 1), Options{})
	require.NoError(t, err)
	index := r.STag().Index()
	require.NoError(t, table.Close(t.Context(), r))
	other := index ^ 0x800000 // the indices that are freed after it
	for range 1<<16 - 1 {
		other = other&^0xffff | (other+1)&0xffff
		table.freed.add(other)
	}
	require.True(t, table.freed.has(index), "65,535 were freed since")
	table.random = bytes.NewReader(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, index<<8), 0x77|(index^0x200000)<<8))
	s, err := table.draw()
	require.NoError(t, err)
	require.Equal(t, index^0x200000, s.Index(), "a draw that hits it is drawn again")
	table.freed.add(index ^ 0x400000)
	require.False(t, table.freed.has(index), "the next one makes room for it")

	var k keys
	k.start(9)
	for i := range 128 {
		require.NotEqual(t, uint8(9), k.draw(uint8(255-i)), "a key is free again behind 128 others")
	}
	reused := false
	for range 128 {
		reused = reused || k.draw(0) == 9
	}
	require.True(t, reused, "and then it may come")
}

// A peer that knows one STag gets nowhere with its neighbours.
func TestRDMAP_127_NeighbourSTagsAreInvalid(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	for d := -1 << 16; d <= 1<<16; d++ {
		if s := r.STag() + STag(d); p.table.lookup(s) != nil && d != 0 {
			require.Failf(t, "a neighbour is found", "%v beside %v", s, r.STag())
		}
	}
}
