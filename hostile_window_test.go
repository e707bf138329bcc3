package iwarp_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A window of the victim lies in the middle of its region, which may be lent but grants
// the peer nothing.
const (
	windowAt  = 16
	windowLen = 32
	windowTO  = 0x9000
)

// lendsWindow binds a window to qp.
func (v *victim) lendsWindow(qp *iwarp.QP, access stag.Access) (*iwarp.MW, *iwarp.MR) {
	v.Helper()
	mr := v.another(v.pd, lendable, nil)
	mw, err := v.pd.AllocMW()
	require.NoError(v, err)
	v.lendsAgain(qp, mw, mr, access)
	return mw, mr
}

// lendsAgain binds. It makes no completion, and is in force when it returns.
func (v *victim) lendsAgain(qp *iwarp.QP, mw *iwarp.MW, mr *iwarp.MR, access stag.Access) {
	v.Helper()
	v.does(qp, iwarp.SendWR{
		Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{mr.Slice(windowAt, windowLen)},
		Access: access, Remote: iwarp.RemoteBuffer{TO: windowTO},
	})
	require.True(v, mw.Valid(), "the window is bound")
}

func (v *victim) does(qp *iwarp.QP, wr iwarp.SendWR) {
	v.Helper()
	wr.Flags |= iwarp.Unsignaled
	require.NoError(v, qp.PostSend(wr))
	synctest.Wait()
}

// deadWindows are the ways in which a window's STag becomes invalid.
var deadWindows = map[string]func(v *victim) stag.STag{
	"never bound": func(v *victim) stag.STag {
		mw, err := v.pd.AllocMW()
		require.NoError(v, err)
		return mw.STag()
	},
	"invalidated by a work request": func(v *victim) stag.STag {
		mw, _ := v.lendsWindow(v.qp, stag.Remote)
		v.does(v.qp, iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MW: mw})
		return mw.STag()
	},
	"invalidated by a call": func(v *victim) stag.STag {
		mw, _ := v.lendsWindow(v.qp, stag.Remote)
		require.NoError(v, mw.Invalidate(context.Background()))
		return mw.STag()
	},
	"closed": func(v *victim) stag.STag {
		mw, _ := v.lendsWindow(v.qp, stag.Remote)
		require.NoError(v, mw.Close())
		return mw.STag()
	},
	"bound anew": func(v *victim) stag.STag {
		mw, mr := v.lendsWindow(v.qp, stag.Remote)
		old := mw.STag()
		require.NoError(v, mw.Invalidate(context.Background()))
		v.lendsAgain(v.qp, mw, mr, stag.Remote)
		return old
	},
	"another key": func(v *victim) stag.STag {
		mw, _ := v.lendsWindow(v.qp, stag.Remote)
		return mw.STag() ^ 1
	},
}

// A windowAttack is an attack on what target has lent, with nothing else posted.
type windowAttack struct {
	attack
	target func(v *victim) stag.STag
	bad    func(s stag.STag) []byte
}

func windowAttacks(t *testing.T, list []windowAttack) {
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				s := a.target(v)
				v.works()
				a.segment = func(*victim) []byte { return a.bad(s) }
				v.suffers(a.attack)
			})
		})
	}
}

// lent returns the STag of a window with these rights.
func lent(access stag.Access) func(v *victim) stag.STag {
	return func(v *victim) stag.STag {
		mw, _ := v.lendsWindow(v.qp, access)
		return mw.STag()
	}
}

// behind returns the STag of the region that a window was bound to.
func behind(v *victim) stag.STag {
	_, mr := v.lendsWindow(v.qp, stag.Remote)
	v.Cleanup(func() { require.True(v, mr.Valid(), "the region lives") })
	return mr.STag()
}

// elsewhere returns the STag of a window of another QP, which outlives the attack.
func elsewhere(v *victim) stag.STag {
	mw, _ := v.lendsWindow(v.other, stag.Remote)
	v.Cleanup(func() { require.True(v, mw.Valid(), "the window lives") })
	return mw.STag()
}

// TestVERBS_9_21_27_28_HostileUseOfWindows: out of bounds, without the right, after its end, and over another QP.
func TestVERBS_9_21_27_28_HostileUseOfWindows(t *testing.T) {
	var list []windowAttack
	writes := func(name string, code transport.Code, is error, to uint64, n int, target func(v *victim) stag.STag) {
		list = append(list, windowAttack{
			attack{name: "write " + name, code: code, is: is},
			target,
			func(s stag.STag) []byte { return wiretest.Write(s, to, strings.Repeat("x", n)) },
		})
	}
	reads := func(name string, code transport.Code, is error, to uint64, n int, target func(v *victim) stag.STag) {
		list = append(list, windowAttack{
			attack{name: "read " + name, code: code, is: is, tells: wiretest.ReadHeader},
			target,
			func(s stag.STag) []byte { return wiretest.ReadRequest(1, 5, 6, uint32(n), s, to) },
		})
	}
	for _, x := range []struct {
		name string
		to   uint64
		n    int
	}{
		{"one octet before", windowTO - 1, 1},
		{"one octet too early", windowTO - 1, windowLen},
		{"one octet too long", windowTO, windowLen + 1},
		{"one octet behind", windowTO + windowLen, 1},
		{"where the region is", regionTO + windowAt, 1},
	} {
		writes(x.name, 0x1101, iwarp.ErrBounds, x.to, x.n, lent(stag.Remote))
		reads(x.name, 0x0101, iwarp.ErrBounds, x.to, x.n, lent(stag.Remote))
	}
	writes("with a TO that wraps", 0x1103, iwarp.ErrBounds, math.MaxUint64-1, 4, lent(stag.Remote))
	reads("with a TO that wraps", 0x0104, iwarp.ErrBounds, math.MaxUint64-1, 4, lent(stag.Remote))
	for name, target := range deadWindows {
		writes(name, 0x1100, iwarp.ErrInvalidSTag, windowTO, 1, target)
		reads(name, 0x0100, iwarp.ErrInvalidSTag, windowTO, 1, target)
	}
	writes("over another QP", 0x1102, iwarp.ErrAccess, windowTO, 1, elsewhere)
	reads("over another QP", 0x0103, iwarp.ErrAccess, windowTO, 1, elsewhere)
	writes("the region behind it", 0x1102, iwarp.ErrAccess, regionTO+windowAt, 1, behind)
	reads("the region behind it", 0x0102, iwarp.ErrAccess, regionTO+windowAt, 1, behind)
	writes("what is lent for reading", 0x1102, iwarp.ErrAccess, windowTO, 1, lent(stag.RemoteRead))
	reads("what is lent for writing", 0x0102, iwarp.ErrAccess, windowTO, 1, lent(stag.RemoteWrite|stag.RemoteAtomic))
	windowAttacks(t, list)
}

// TestVERBS_17_18_22_27_HostileInvalidateOfWindows: the peer may invalidate only a window that is lent to it.
func TestVERBS_17_18_22_27_HostileInvalidateOfWindows(t *testing.T) {
	var list []windowAttack
	invalidates := func(name string, code transport.Code, target func(v *victim) stag.STag) {
		list = append(list, windowAttack{
			attack{name: name, code: code},
			target,
			func(s stag.STag) []byte { return wiretest.Untagged(0x41, 0x44, uint32(s), 0, 1, 0, "") },
		})
	}
	for name, target := range deadWindows {
		invalidates(name, 0x0209, target)
	}
	invalidates("a window of another QP", 0x0109, elsewhere)
	invalidates("the region behind a window", 0x0109, behind)
	invalidates("a region of all QPs of the PD", 0x0109, func(v *victim) stag.STag { return v.mr.STag() })
	invalidates("a region of this QP that grants the peer nothing", 0x0109, func(v *victim) stag.STag {
		return v.another(v.pd, stag.LocalWrite, v.qp).STag()
	})
	invalidates("a region of this QP to which a window is bound", 0x0109, func(v *victim) stag.STag {
		mr := v.another(v.pd, anyRemote|stag.MWBind, v.qp)
		mw, err := v.pd.AllocMW()
		require.NoError(v, err)
		v.lendsAgain(v.qp, mw, mr, stag.RemoteRead)
		v.Cleanup(func() {
			require.True(v, mr.Valid(), "the region lives")
			require.False(v, mw.Valid(), "the window has ended with the QP")
		})
		return mr.STag()
	})
	windowAttacks(t, list)
}

// TestVERBS_21_WindowIsRevokedFromAStalledPeer: a peer that sends half a segment
// does not delay Close, and the rest of the segment is not placed.
func TestVERBS_21_WindowIsRevokedFromAStalledPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{})
		mw, mr := v.lendsWindow(v.qp, stag.Remote)
		v.works()
		bad := wiretest.Write(mw.STag(), windowTO, "the rest of this comes when it is too late")
		wire := wiretest.FPDU(bad)
		v.p.Write(wire[:len(wire)/2])
		synctest.Wait()
		require.NoError(t, mw.Close(), "Close does not wait")
		require.NoError(t, mr.Close())
		v.p.Write(wire[len(wire)/2:])
		require.Equal(t, wiretest.Terminate(0x1100, wiretest.DDPHeader, bad), v.p.Segment())
		v.p.WantEOF("the Terminate is the last message")
		v.p.Close()
		v.ended(attack{code: 0x1100, is: iwarp.ErrInvalidSTag})
	})
}
