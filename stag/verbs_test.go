package stag

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestVERBS_1_2_IndexAndKeyBothCount(t *testing.T) {
	p := newPeer(t)
	r := p.register(8, everyRight, 0)
	s := r.STag()
	require.Equal(t, s, STag(s.Index()<<8|uint32(s.Key())), "index in the upper 24 bits, key in the lower 8")
	for key := range STag(256) {
		expect := InvalidSTag
		if uint8(key) == s.Key() {
			expect = None
		}
		require.Equal(t, expect, p.try(s&^0xff|key, RemoteRead, 0, 8), "key %#x of %v", key, s)
	}
}

// TestVERBS_1_ChosenKeyIsInUse: it is the last to be drawn again.
func TestVERBS_1_ChosenKeyIsInUse(t *testing.T) {
	var k keys
	k.start(9)
	require.Equal(t, uint8(10), k.order[0], "the oldest")
	k.choose(10)
	require.Equal(t, uint8(10), k.order[255])
	require.Equal(t, uint8(11), k.draw(0), "the next one is another")
	k.choose(200)
	require.Equal(t, []uint8{10, 11, 200}, k.order[253:])
	k.choose(200)
	require.Equal(t, []uint8{10, 11, 200}, k.order[253:], "to choose what is in use changes nothing")

	b := newPeer(t).fastRegion(8, everyRight)
	for _, key := range []uint8{77, 5} {
		_, err := b.Prepare(make([]byte, 8), everyRight, 0, &key)
		require.NoError(t, err)
		require.Equal(t, key, b.keys.order[255])
	}
}

// TestVERBS_1_TheCallerChoosesTheKey at every enable, whatever was in use before. The
// index stays.
func TestVERBS_1_TheCallerChoosesTheKey(t *testing.T) {
	p := newPeer(t)
	for _, key := range []uint8{0, 0x7f, 0xff} {
		for _, register := range map[string]func(o Options) (*Region, error){
			"memory":   func(o Options) (*Region, error) { return p.table.Register(make([]byte, 8), o) },
			"a Buffer": func(o Options) (*Region, error) { return p.table.RegisterBuffer(sized(8), o) },
		} {
			r, err := register(Options{Access: everyRight, Scope: p.scope, Key: &key})
			require.NoError(t, err)
			require.Equal(t, key, r.STag().Key())
			require.NotZero(t, r.STag().Index())
			require.Equal(t, None, p.try(r.STag(), RemoteWrite, 0, 8))
			require.Equal(t, InvalidSTag, p.try(r.STag()^1, RemoteWrite, 0, 8))
		}
	}
	b, w, on := p.fastRegion(8, everyRight), p.window(), p.register(8, lendable, 0)
	enables := map[*entry]func(key *uint8) (*Region, error){
		&b.entry: func(key *uint8) (*Region, error) {
			r, err := b.Prepare(make([]byte, 8), everyRight, 0, key)
			require.NoError(t, err)
			return r, p.table.Enable(p.scope, r)
		},
		&w.entry: func(key *uint8) (*Region, error) {
			r, err := w.Prepare(8, RemoteWrite, 0, key)
			require.NoError(t, err)
			return r, p.table.Bind(p.scope, &p.windows, r, on, 0)
		},
	}
	for e, enable := range enables {
		index := e.Live().STag().Index()
		for _, key := range []uint8{3, 2, 0, 0xff, 0xff, 3} { // the same again, too
			r, err := enable(&key)
			require.NoError(t, err)
			require.Equal(t, STag(index<<8|uint32(key)), r.STag())
			require.Equal(t, None, p.try(r.STag(), RemoteWrite, 0, 8))
			require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false))
		}
		for range 128 {
			r, err := enable(nil)
			require.NoError(t, err)
			require.Equal(t, index, r.STag().Index())
			require.NotEqual(t, uint8(3), r.STag().Key(), "one that was chosen is not drawn soon")
			require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false))
		}
	}
}

func TestVERBS_3_IndexZeroIsNeverHandedOut(t *testing.T) {
	p := newPeer(t)
	p.table = scripted(0, 0x42, 0xff, minSlots<<8|0x42)
	r := p.register(8, everyRight, 0)
	require.Equal(t, STag(minSlots<<8|0x42), r.STag())
	p.close(r) // the slot where probing for index 0 begins is now that of a removed region
	for key := range STag(256) {
		require.Equal(t, InvalidSTag, p.try(key, RemoteRead, 0, 1), "index 0 is always invalid")
		require.Equal(t, InvalidSTag, p.table.InvalidateSTag(Scope{}, key, false))
	}
}

func TestVERBS_4_NoProgression(t *testing.T) {
	p := newPeer(t)
	steps := map[STag]int{}
	var last STag
	for range 1000 {
		s := p.register(1, 0, 0).STag()
		steps[s-last]++
		last = s
	}
	for step, n := range steps {
		require.Less(t, n, 3, "the step %#x is no habit", uint32(step))
	}
}

func TestVERBS_7_8_ARCH_2_15_BaseTO(t *testing.T) {
	p := newPeer(t)
	const size = 8
	for _, base := range []uint64{0, 1, 0x7fff_1234_5678, 1 << 63, ^uint64(0) - size} {
		r := p.register(size, everyRight, base)
		require.Equal(t, base, r.BaseTO())
		require.Equal(t, uint64(size), r.Len())
		require.Equal(t, None, p.try(r.STag(), RemoteWrite, base, 1), "the first octet at base %#x", base)
		require.Equal(t, None, p.try(r.STag(), RemoteWrite, base+size-1, 1), "the last octet at base %#x", base)
		require.Equal(t, None, p.try(r.STag(), RemoteWrite, base, size), "all of it at base %#x", base)
	}
	for _, base := range []uint64{^uint64(0) - size + 1, ^uint64(0)} {
		_, err := p.table.Register(make([]byte, size), Options{BaseTO: base})
		require.ErrorContains(t, err, "wrap: TO plus length is at most 2^64-1", "also where the last TO is 2^64-1")
	}
}

func TestVERBS_11_ARCH_13_14_OverlappingRegionsAreIndependent(t *testing.T) {
	p := newPeer(t)
	// The second draw is the index of the first region, and the third one is looked for at
	// the same place.
	p.table = scripted(0x00000511, 0x00000522, (5+minSlots)<<8|0x33)
	mem := make([]byte, 16)
	var regions [2]*Region
	for i := range regions {
		r, err := p.table.Register(mem[4*i:4*i+12], Options{Access: everyRight, Scope: Scope{PD: 1}})
		require.NoError(t, err)
		regions[i] = r
	}
	require.NotEqual(t, regions[0].STag().Index(), regions[1].STag().Index())
	for i, r := range regions {
		require.Equal(t, None, p.try(r.STag(), RemoteWrite, 0, 12), "region %d", i)
	}
	p.invalidate(regions[0])
	p.close(regions[0])
	p.wantRefused("the first is gone", regions[0], InvalidSTag)
	require.Equal(t, None, p.try(regions[1].STag(), RemoteWrite, 0, 12), "the second is not affected")
	require.Equal(t, numbered(12), mem[4:])
}

func TestVERBS_21_InvalidateSTagWaitsForThePlacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := p.registerFor(p.scope, 8, everyRight, 0)
		require.True(t, r.Pin(), "a placement is under way")
		var verdict Violation
		result := later(func() error { verdict = p.table.InvalidateSTag(p.scope, r.STag(), true); return nil })
		_, done := result()
		require.False(t, done, "the placement is waited for")
		require.Equal(t, InvalidSTag, p.try(r.STag(), RemoteWrite, 0, 1), "no other placement can begin")
		require.NoError(t, r.Place(0, numbered(8)), "the one under way ends as it began")
		r.Unpin()
		_, done = result()
		require.True(t, done)
		require.Equal(t, None, verdict)
	})
}
