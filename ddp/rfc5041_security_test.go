package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 5041 section 8: who may write where.

func TestDDP_79_SEC_4_34_STagOfAPDOrOfOneStream(t *testing.T) {
	write := func(owner, writer stag.Scope) error {
		c := converse(t, 0)
		r, _ := c.region(8, func(o *stag.Options) { o.Scope = owner })
		c.s = New(Config{Table: c.table, Scope: writer, Upper: c})
		return c.send(tagged(true, r.STag(), 0x1000, []byte("x")))
	}
	pd := stag.Scope{PD: alice.PD}
	require.NoError(t, write(pd, alice), "an STag of the PD serves every stream of it")
	require.NoError(t, write(pd, bob), "an STag of the PD serves every stream of it")
	require.Error(t, write(pd, carol), "but no other PD")
	require.NoError(t, write(alice, alice), "an STag of a stream serves that stream")
	require.Error(t, write(alice, bob), "but not its neighbour")
}

func TestDDP_80_82_ForeignSTagIsReportedToTheLocalSide(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(8, func(o *stag.Options) { o.Scope = bob })
	e := c.wantReport("an attempt on another stream's memory", transport.DDPNotAssociated,
		tagged(true, r.STag(), 0x1000, []byte("x")))
	require.Equal(t, make([]byte, 8), mem, "is not carried out")
	require.Contains(t, e.Error(), r.STag().String(), "and its report names the STag")
}

func TestDDP_81_ValidityCanBeRevokedBetweenSegments(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(8, nil)
	c.sends("valid", tagged(false, r.STag(), 0x1000, []byte("ab")))
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	c.wantFault("revoked in the middle of a message", transport.DDPInvalidSTag, tagged(true, r.STag(), 0x1002, []byte("cd")))
	require.Equal(t, "ab\x00\x00", string(mem[:4]), "what comes after is not placed")
}

// TestDDP_81_RangeValidityAndStreamAreSetAndRevoked, each by itself, and each anew after
// it was revoked.
func TestDDP_81_RangeValidityAndStreamAreSetAndRevoked(t *testing.T) {
	c := converse(t, 0)
	mem := make([]byte, 16)
	ok := transport.Code(0)
	// write is one Write of n octets by a new stream.
	write := func(that string, scope stag.Scope, st stag.STag, to uint64, n int, want transport.Code) {
		t.Helper()
		clear(mem)
		c.s, c.seq = New(Config{Table: c.table, Scope: scope, Upper: c}), 0
		segment := tagged(true, st, to, octets(n))
		if want != ok {
			c.wantFault(that, want, segment)
			require.Equal(t, make([]byte, 16), mem, that)
			return
		}
		c.sends(that, segment)
		require.Contains(t, string(mem), string(octets(n)), that)
	}
	revoke := func(st stag.STag, scope stag.Scope) {
		t.Helper()
		require.Equal(t, stag.None, c.table.InvalidateSTag(scope, st, false))
	}

	const rights = stag.LocalWrite | stag.RemoteWrite
	allocated, err := c.table.Allocate(16, stag.Options{Access: rights, Scope: stag.Scope{PD: alice.PD}})
	require.NoError(t, err)
	enable := func(octets []byte, base uint64) stag.STag {
		t.Helper()
		r, err := allocated.Prepare(octets, rights, base, nil)
		require.NoError(t, err)
		require.NoError(t, c.table.Enable(alice, r))
		return r.STag()
	}
	first := enable(mem[:8], 0x1000)
	write("all of the range that was set", alice, first, 0x1000, 8, ok)
	write("an octet before it", alice, first, 0xfff, 1, transport.DDPBounds)
	write("an octet after it", alice, first, 0x1008, 1, transport.DDPBounds)
	write("another stream of the PD", bob, first, 0x1000, 8, ok)
	revoke(first, alice)
	write("validity is revoked", alice, first, 0x1000, 1, transport.DDPInvalidSTag)
	second := enable(mem[4:8], 0x5000)
	write("it is set again, with another range", alice, second, 0x5000, 4, ok)
	write("which is shorter", alice, second, 0x5004, 1, transport.DDPBounds)
	write("the range before is revoked", alice, second, 0x1000, 1, transport.DDPBounds)
	write("and so is the STag of that time", alice, first, 0x5000, 1, transport.DDPInvalidSTag)

	lent, err := c.table.Register(mem, stag.Options{Access: stag.LocalWrite | stag.MWBind, Scope: stag.Scope{PD: alice.PD}})
	require.NoError(t, err)
	window, err := c.table.AllocateWindow(alice.PD)
	require.NoError(t, err)
	bind := func(scope stag.Scope) stag.STag {
		t.Helper()
		w, err := window.Prepare(8, stag.RemoteWrite, 0x2000, nil)
		require.NoError(t, err)
		require.NoError(t, c.table.Bind(scope, new(stag.Windows), w, lent, 0))
		return w.STag()
	}
	first = bind(alice)
	write("the stream that it is set for", alice, first, 0x2000, 8, ok)
	write("another", bob, first, 0x2000, 1, transport.DDPNotAssociated)
	revoke(first, alice)
	second = bind(bob)
	write("revoked, and set for the other", bob, second, 0x2000, 8, ok)
	write("not for the first", alice, second, 0x2000, 1, transport.DDPNotAssociated)
	write("it has no access to the earlier one", alice, first, 0x2000, 1, transport.DDPInvalidSTag)
	revoke(second, bob)
	write("revoked for good", bob, second, 0x2000, 1, transport.DDPInvalidSTag)
}

// The digest of a segment must match the octets sent, even if the peer writes
// to the source in the meantime.
func TestSharedSourceIsCopiedWhereADigestProtectsIt(t *testing.T) {
	for _, at := range []struct {
		that   string
		access stag.Access
		digest bool
		staged bool
	}{
		{"no peer can write it", stag.LocalWrite | stag.RemoteRead, true, false},
		{"the peer can write it", stag.LocalWrite | stag.RemoteWrite, true, true},
		{"the peer can change it by atomics", stag.LocalWrite | stag.RemoteAtomic, true, true},
		{"a window to it may let the peer write", stag.LocalWrite | stag.MWBind, true, true},
		{"windows to it are only read", stag.MWBind, true, false},
		{"the peer can write it, but there is no digest", stag.LocalWrite | stag.RemoteWrite, false, false},
	} {
		r, err := stag.NewTable().Register(octets(64), stag.Options{Access: at.access, Scope: alice})
		require.NoError(t, err)
		l := &scriptLLP{mulpdu: 1500, digest: at.digest}
		emit(t, new(Sender), l, &Message{MSN: 1, Source: []stag.Span{{Region: r, Len: 64}}})
		require.Equal(t, []bool{at.staged}, l.staged, at.that)
	}
}

// TestOnlyAWriteMayFailWithoutAnError: the owner of a Buffer learns of the octets of an RDMA
// Write that it could not take, and the stream learns of all other failures.
func TestOnlyAWriteMayFailWithoutAnError(t *testing.T) {
	for _, access := range []stag.Access{stag.RemoteWrite, stag.LocalWrite} {
		c := converse(t, 0)
		c.access = access
		var failed []int64
		r, err := c.table.RegisterBuffer(&scriptBuffer{mem: octets(8), fail: errScripted}, stag.Options{
			Access: stag.LocalWrite | stag.RemoteWrite, Scope: alice,
			Failed: func(off, n int64, err error) { failed = append(failed, off, n) },
		})
		require.NoError(t, err)
		segment := tagged(true, r.STag(), 2, []byte("abc"))
		if access == stag.RemoteWrite {
			c.sends("a Write", segment)
			require.Equal(t, []int64{2, 3}, failed)
		} else {
			c.wantFault("a Read Response", transport.DDPLocalCatastrophic, segment)
			require.Empty(t, failed)
		}
		require.NoError(t, c.table.Invalidate(done(t), r), "nothing is pinned")
	}
}
