package iwarp_test

import (
	"context"
	"fmt"
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

const anyRemote = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead

// deadMRs are the ways in which an STag has no region.
var deadMRs = []struct {
	name string
	stag func(v *victim) stag.STag
}{
	{"an STag that nobody has", func(v *victim) stag.STag { return v.mr.STag() ^ 0x00010000 }},
	{"the key of the STag is another", func(v *victim) stag.STag { return v.mr.STag() ^ 1 }},
	{"STag 0", func(*victim) stag.STag { return 0 }},
	{"a closed region", func(v *victim) stag.STag {
		mr := v.another(v.pd, anyRemote, nil)
		require.NoError(v, mr.Close())
		return mr.STag()
	}},
	{"an invalidated region", func(v *victim) stag.STag {
		mr := v.another(v.pd, anyRemote, nil)
		require.NoError(v, mr.Invalidate(context.Background()))
		return mr.STag()
	}},
}

// foreignMRs are regions that are somebody else's.
var foreignMRs = []struct {
	name string
	mr   func(v *victim) *iwarp.MR
}{
	{"a region of another PD", func(v *victim) *iwarp.MR {
		pd, err := v.rnic.AllocPD()
		require.NoError(v, err)
		return v.another(pd, anyRemote, nil)
	}},
	{"a region of another QP of the PD", func(v *victim) *iwarp.MR { return v.another(v.pd, anyRemote, v.other) }},
}

// outside are ranges that are not all in the region.
var outside = []struct {
	name string
	to   uint64
	n    int
	wrap bool
}{
	{"one octet before the region", regionTO - 1, 1, false},
	{"begins one octet too early", regionTO - 1, regionLen, false},
	{"ends one octet too late", regionTO, regionLen + 1, false},
	{"the last octet is one too many", regionTO + regionLen - 3, 4, false},
	{"one octet behind the region", regionTO + regionLen, 1, false},
	{"far away", 1 << 40, 1, false},
	{"TO wraps", math.MaxUint64 - 3, 8, true},
	{"TO wraps into the region", math.MaxUint64 - 1, regionTO + 10, true},
}

// TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites: what is in error, and
// what comes behind it, is not placed.
func TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites(t *testing.T) {
	var list []attack
	for _, x := range deadMRs {
		list = append(list, attack{
			name: x.name, code: 0x1100, is: iwarp.ErrInvalidSTag,
			segment: func(v *victim) []byte { return wiretest.Write(x.stag(v), regionTO, "bad") },
		})
	}
	for _, x := range foreignMRs {
		list = append(list, attack{
			name: x.name, code: 0x1102, is: iwarp.ErrAccess,
			segment: func(v *victim) []byte { return wiretest.Write(x.mr(v).STag(), regionTO, "bad") },
		})
	}
	for _, x := range outside {
		code := transport.Code(0x1101)
		if x.wrap {
			code = 0x1103
		}
		list = append(list, attack{
			name: x.name, code: code, is: iwarp.ErrBounds,
			segment: func(v *victim) []byte { return wiretest.Write(v.mr.STag(), x.to, strings.Repeat("x", x.n)) },
		})
	}
	attacks(t, list)
}

// TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight: RFC 5041 has no code
// for it; the nearest one is sent.
func TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight(t *testing.T) {
	var list []attack
	for _, access := range []stag.Access{0, stag.LocalWrite, stag.RemoteRead, stag.LocalWrite | stag.RemoteRead} {
		list = append(list, attack{
			name: access.String(), code: 0x1102, is: iwarp.ErrAccess,
			segment: func(v *victim) []byte { return wiretest.Write(v.another(v.pd, access, nil).STag(), regionTO, "bad") },
		})
	}
	attacks(t, append(list, attack{
		name: "the sink of an RDMA Read", code: 0x1102, is: iwarp.ErrAccess,
		segment: func(v *victim) []byte { return wiretest.Write(v.sink.STag(), 0, "bad") },
	}))
}

// TestDDP_19_41_VersionOfTaggedSegments.
func TestDDP_19_41_VersionOfTaggedSegments(t *testing.T) {
	var list []attack
	for _, control := range []byte{0xc0, 0xc2, 0xc3, 0x80} {
		list = append(list, attack{
			name: fmt.Sprintf("%02x", control), code: 0x1104,
			segment: func(v *victim) []byte { return wiretest.Tagged(control, 0x40, v.mr.STag(), regionTO, "bad") },
		}, attack{
			name: fmt.Sprintf("%02x", control) + " without payload", code: 0x1104,
			segment: func(v *victim) []byte { return wiretest.Tagged(control, 0x40, 0, 0, "") },
		})
	}
	attacks(t, list)
}

// TestRDMAP_40_41_42_HostileReadResponses: a peer that answers an RDMA Read with
// something else than was asked for writes nowhere with it.
func TestRDMAP_40_41_42_HostileReadResponses(t *testing.T) {
	wrong := func(name string, code transport.Code, is error, segment func(v *victim) []byte) attack {
		return attack{name: name, code: code, is: is, read: iwarp.StatusBadResponse, segment: segment}
	}
	full := strings.Repeat("x", sinkLen)
	attacks(t, []attack{
		wrong("an STag that nobody has", 0x1100, iwarp.ErrInvalidSTag, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag()^1, 0, full)
		}),
		wrong("a region that the peer may write to", 0x1100, iwarp.ErrInvalidSTag, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.mr.STag(), regionTO, full)
		}),
		wrong("a receive", 0x1100, iwarp.ErrInvalidSTag, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.recv.STag(), 0, full)
		}),
		wrong("one octet too late", 0x1101, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag(), 1, full[1:])
		}),
		wrong("before the sink", 0x1101, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag(), math.MaxUint64, full)
		}),
		wrong("one octet too long", 0x1101, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag(), 0, full+"x")
		}),
		wrong("one octet too short", 0x1101, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag(), 0, full[1:])
		}),
		wrong("empty", 0x1101, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadResponse(0xc1, v.sink.STag(), 0, "")
		}),
	})
}

// TestRDMAP_42_87_ReadResponseThatNobodyAskedFor: it is an unexpected opcode.
func TestRDMAP_42_87_ReadResponseThatNobodyAskedFor(t *testing.T) {
	for name, payload := range map[string]string{"empty": "", "with payload": "bad"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				v.p.Send(wiretest.ReadResponse(0xc1, v.sink.STag(), 0, strings.Repeat("r", sinkLen)))
				var wcs [1]iwarp.WC
				_, err := v.cq.Wait(testContext(t), wcs[:])
				require.NoError(t, err)
				require.Equal(t, iwarp.StatusSuccess, wcs[0].Status, "the RDMA Read is answered")
				copy(v.want[sinkAt:], strings.Repeat("r", sinkLen))
				require.NoError(t, v.qp.PostSend(iwarp.SendWR{ID: readID, Op: iwarp.OpSend}))
				v.p.WantSegment("a Send", "41 43 00000000 00000000 00000001 00000000")
				_, err = v.cq.Wait(testContext(t), wcs[:])
				require.NoError(t, err)

				bad := wiretest.ReadResponse(0xc1, v.sink.STag(), 0, payload)
				v.p.Send(bad)
				require.Equal(t, wiretest.Terminate(0x0206, wiretest.DDPHeader, bad), v.p.Segment(), "a second response is unexpected")
				v.p.WantEOF("the Terminate is the last message")
				v.p.Close()
				<-v.qp.Done()
				v.wantCause(v.qp.Err(), attack{code: 0x0206})
				require.Equal(t, v.want, v.arena, "nothing more was placed")
				v.othersLive()
			})
		})
	}
}
