package stag

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// RFC 5042 section 6.1.1: Write, Read Request, Read Response and Invalidate.
func TestSEC_5_VERBS_9_STagOfAnotherPDIsOfNoUse(t *testing.T) {
	p := newPeer(t)
	r := p.registerFor(p.scope, 8, everyRight, 0)
	other := p.as(Scope{PD: 2, Stream: 7})
	other.wantRefused("no access from another PD", r, NotAssociated)
	for _, remote := range []bool{false, true} {
		require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(other.scope, r.STag(), remote))
	}
	p.wantAllowed("the region is still VALID for its own stream", r)
}

// RFC 5042 section 6.1.1.
func TestSEC_6_STagOfAnotherStreamIsOfNoUse(t *testing.T) {
	p := newPeer(t)
	r := p.registerFor(p.scope, 8, everyRight, 0)
	other := p.as(Scope{PD: 1, Stream: 8})
	other.wantRefused("no access from another stream", r, NotAssociated)
	for _, remote := range []bool{false, true} {
		require.Equal(t, NotInvalidatable, p.table.InvalidateSTag(other.scope, r.STag(), remote))
	}
	p.wantAllowed("the region is still VALID for its own stream", r)

	shared := p.register(8, everyRight, 0)
	other.wantAllowed("an STag of the PD serves every stream of it", shared)
}

// RFC 5040 section 8.1.1 (8), RFC 5042 section 6.1.1: index and key are drawn anew
// for every registration, over all 32 bits.
func TestSEC_7_8_EveryRegistrationDrawsAllBits(t *testing.T) {
	table := scripted(0x00000111, 0xfffffffe, 0x80000001)
	for _, want := range []STag{0x00000111, 0xfffffffe, 0x80000001} {
		r, err := table.Register(make([]byte, 1), Options{})
		require.NoError(t, err)
		require.Equal(t, want, r.STag(), "the random value is the STag, whole")
	}
}

// RFC 5042 section 6.1.1: reuse is as slow as possible.
func TestSEC_9_FreedIndexIsInQuarantine(t *testing.T) {
	p := newPeer(t)
	p.table = scripted(
		0x00000511,                         // first
		0x00000522, 0x00000611, 0x00000533, // while first lives; second; while first is INVALID
		0x00000711, // third
		0x00000544, // after first was closed
		0x00000811, // fourth
		0x00000622, // after first and second were closed, with room for one in quarantine
		0x00000555, // sixth: the first index again
	)
	p.table.freed.limit = 1
	first, second := p.register(1, 0, 0), p.register(1, 0, 0)
	require.Equal(t, STag(0x00000611), second.STag(), "an index in use is not handed out again")
	p.invalidate(first)
	third := p.register(1, 0, 0)
	require.Equal(t, STag(0x00000711), third.STag(), "nor is one whose region is INVALID")
	p.close(first)
	fourth := p.register(1, 0, 0)
	require.Equal(t, STag(0x00000811), fourth.STag(), "nor is one that was freed just now")
	p.close(second)
	sixth := p.register(1, RemoteRead, 0)
	require.Equal(t, STag(0x00000555), sixth.STag(), "one that left quarantine may come back")
	require.Equal(t, InvalidSTag, p.try(first.STag(), RemoteRead, 0, 1), "its former key stays dead")
	require.Equal(t, None, p.try(sixth.STag(), RemoteRead, 0, 1))
}

// RFC 5042 sections 6.2.1 and 6.3.1. What lies beside the region in the same memory
// is canaries.
func TestSEC_10_11_OctetsBesideTheRegionStay(t *testing.T) {
	const base, size = uint64(1) << 40, 16
	mem := make([]byte, 8+size+8)
	p := newPeer(t)
	r, err := p.table.Register(mem[8:8+size], Options{Access: everyRight, BaseTO: base, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	for _, c := range []struct {
		to     uint64
		n      int
		expect Violation
	}{
		{base - 1, 1, Bounds},
		{base - 1, size + 2, Bounds},
		{base, size, None},
		{base, size + 1, Bounds},
		{base + size - 1, 1, None},
		{base + size - 1, 2, Bounds},
		{base + size, 1, Bounds},
		{0, 1, Bounds},
		{^uint64(0) - 3, 8, Wrap},
		{^uint64(0), 1, Wrap},
		{^uint64(0) - 1, 1, Bounds},
	} {
		for _, want := range []Access{RemoteWrite, LocalWrite, RemoteRead} {
			require.Equal(t, c.expect, p.try(r.STag(), want, c.to, c.n), "%v of %d octets at %#x", want, c.n, c.to)
		}
	}
	require.Equal(t, make([]byte, 8), mem[:8], "nothing before the region was touched")
	require.Equal(t, make([]byte, 8), mem[8+size:], "nothing after it was touched")
}

// RFC 5042 section 6.2.2: also a segment that was received before the revocation
// and resolved after it, by either kind of revocation.
func TestSEC_12_RevokedBufferDoesNotChange(t *testing.T) {
	p := newPeer(t)
	for name, revoke := range map[string]func(*Region){
		"Invalidate":        p.invalidate,
		"local invalidate":  func(r *Region) { require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false)) },
		"remote invalidate": func(r *Region) { require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), true)) },
		"Close":             p.close,
	} {
		r := p.registerFor(p.scope, 8, everyRight, 0)
		posted := []Span{{Region: r, Len: 8}}
		p.wantAllowed("before "+name, r)
		clear(r.mem)
		revoke(r)
		p.wantRefused("after "+name, r, InvalidSTag)
		require.ErrorIs(t, PlaceAt(posted, 0, numbered(8)), ErrInvalid, "after %s receives miss the region, too", name)
		require.Equal(t, make([]byte, 8), r.mem)
		require.False(t, r.Pin())
		require.False(t, r.Usable(), "no work request can use it")
		require.False(t, r.Valid())
	}
}

// RFC 5041 section 8.3.1 (5): what was granted is what the owner reads back.
func TestSEC_14_RightsAreGrantedAndRevoked(t *testing.T) {
	p := newPeer(t)
	for _, a := range []Access{RemoteRead, LocalWrite | RemoteWrite, LocalWrite | RemoteRead | RemoteWrite} {
		r := p.register(8, a, 64)
		require.Equal(t, a, r.Access())
		require.True(t, r.Valid())
		for _, want := range []Access{RemoteRead, RemoteWrite} {
			require.Equal(t, a&want == want, p.try(r.STag(), want, 64, 8) == None, "%v asked of %v", want, a)
		}
		p.invalidate(r)
		p.wantRefused("revoked", r, InvalidSTag)
	}
}

// RFC 5042 section 7.3: a region is the octets that were passed, not those after them in
// the same array.
func TestSEC_31_RegionIsTheSliceAndNoMore(t *testing.T) {
	const size = 8
	p := newPeer(t)
	for what, register := range map[string]func(mem []byte) *Region{
		"registered": func(mem []byte) *Region {
			r, err := p.table.Register(mem, Options{Access: everyRight, Scope: Scope{PD: 1}})
			require.NoError(t, err)
			return r
		},
		"enabled": func(mem []byte) *Region { return p.enable(p.fastRegion(2*size, everyRight), mem, everyRight, 0) },
	} {
		array := make([]byte, 2*size)
		r := register(array[:size])
		require.EqualValues(t, size, r.Len(), what)
		for _, want := range []Access{LocalWrite, RemoteWrite, RemoteRead} {
			require.Equal(t, None, p.try(r.STag(), want, 0, size), what)
			require.Equal(t, Bounds, p.try(r.STag(), want, size, 1), "%s: %v of what was not passed", what, want)
		}
		require.Equal(t, make([]byte, size), array[size:], what)
	}
}

// RFC 5040 section 8.1.1 (7) and section 5.3.
func TestSEC_17_VERBS_18_22_RemoteInvalidate(t *testing.T) {
	p := newPeer(t)
	for _, c := range []struct {
		expectation string
		scope       Scope
		access      Access
		local       Violation
		remote      Violation
	}{
		{"own STag", p.scope, everyRight, None, None},
		{"own STag with one remote right", p.scope, RemoteRead, None, None},
		{"own STag without a remote right", p.scope, LocalWrite | MWBind, None, NotInvalidatable},
		{"STag of the whole PD", Scope{PD: 1}, everyRight, None, NotInvalidatable},
		{"STag of another stream", Scope{PD: 1, Stream: 8}, everyRight, NotInvalidatable, NotInvalidatable},
		{"STag of another PD", Scope{PD: 2}, everyRight, NotInvalidatable, NotInvalidatable},
	} {
		for remote, expect := range map[bool]Violation{false: c.local, true: c.remote} {
			r := p.registerFor(c.scope, 8, c.access, 0)
			require.Equal(t, expect, p.table.InvalidateSTag(p.scope, r.STag(), remote), "%s, remote: %v", c.expectation, remote)
			require.Equal(t, expect != None, r.Valid(), "%s, remote: %v", c.expectation, remote)
		}
	}
	r := p.registerFor(p.scope, 8, everyRight, 0)
	require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, r.STag()^1, true), "another key is another STag")
	require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, 0, true), "STag 0 names nothing")
	p.invalidate(r)
	require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, r.STag(), true), "a peer must name a VALID STag")
	require.Equal(t, None, p.table.InvalidateSTag(p.scope, r.STag(), false), "locally an INVALID one may be named")
	p.close(r)
	require.Equal(t, InvalidSTag, p.table.InvalidateSTag(p.scope, r.STag(), false), "a closed one is unknown")
}
