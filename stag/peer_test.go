package stag

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A testPeer is a stream that uses the regions of a table, and the test.
type testPeer struct {
	t       *testing.T
	table   *Table
	scope   Scope
	windows Windows // bound to it
}

// newPeer returns a stream of PD 1 on a table of its own.
func newPeer(t *testing.T) *testPeer {
	return &testPeer{t: t, table: NewTable(), scope: Scope{PD: 1, Stream: 7}}
}

// as returns the same table seen by another stream.
func (p *testPeer) as(scope Scope) *testPeer {
	return &testPeer{t: p.t, table: p.table, scope: scope}
}

// register makes a region of n octets that every stream of PD 1 may use.
func (p *testPeer) register(n int, a Access, base uint64) *Region {
	p.t.Helper()
	return p.registerFor(Scope{PD: 1}, n, a, base)
}

func (p *testPeer) registerFor(scope Scope, n int, a Access, base uint64) *Region {
	p.t.Helper()
	r, err := p.table.Register(make([]byte, n), Options{Access: a, BaseTO: base, Scope: scope})
	require.NoError(p.t, err)
	return r
}

// try makes one access, writing ones where the right is to write, and returns its
// verdict.
func (p *testPeer) try(s STag, want Access, to uint64, n int) Violation {
	p.t.Helper()
	r, off, v := p.table.Pin(p.scope, s, want, to, n)
	if v != None {
		require.Nil(p.t, r, "a refused access pins nothing")
		return v
	}
	defer r.Unpin()
	if want&(LocalWrite|RemoteWrite) != 0 {
		require.NoError(p.t, r.Place(off, numbered(n)))
	}
	return None
}

// wantRefused tries every right on the first octet of the region, and checks that
// the region is as it was.
func (p *testPeer) wantRefused(expectation string, r *Region, v Violation) {
	p.t.Helper()
	before := bytes.Clone(r.mem)
	for _, want := range []Access{LocalWrite, RemoteWrite, RemoteRead, RemoteAtomic} {
		require.Equal(p.t, v, p.try(r.STag(), want, r.BaseTO(), 1), "%s (%v)", expectation, want)
	}
	require.Equal(p.t, before, r.mem, "%s: no octet changed", expectation)
}

// wantAllowed tries every right that the region grants on its first octet.
func (p *testPeer) wantAllowed(expectation string, r *Region) {
	p.t.Helper()
	for _, want := range []Access{LocalWrite, RemoteWrite, RemoteRead, RemoteAtomic} {
		if r.Access().allows(want) {
			require.Equal(p.t, None, p.try(r.STag(), want, r.BaseTO(), 1), "%s (%v)", expectation, want)
		}
	}
}

// invalidate and close are for regions whose pins and holds end soon.
func (p *testPeer) invalidate(r *Region) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	require.NoError(p.t, p.table.Invalidate(ctx, r))
}

func (p *testPeer) close(r *Region) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	require.NoError(p.t, p.table.Close(ctx, r))
}

const everyRight = LocalWrite | Remote
