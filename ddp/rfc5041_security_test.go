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

// The digest of a segment must be that of the octets sent, even if the peer writes
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
		emit(t, new(Sender), l, &Outbound{MSN: 1, Source: []stag.Span{{Region: r, Len: 64}}})
		require.Equal(t, []bool{at.staged}, l.staged, at.that)
	}
}
