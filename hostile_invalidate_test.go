package iwarp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_53_55_89_90_120_126_HostileSendWithInvalidate: the peer names an STag that it may not invalidate. The
// message takes no receive, and the region stays valid.
func TestRDMAP_53_55_89_90_120_126_HostileSendWithInvalidate(t *testing.T) {
	attackScript(t, "testdata/hostile/invalidate.txt")
}

// TestRDMAP_54_56_57_69_UseAfterInvalidate: the peer rightly invalidates a region, and then writes to it or reads it all
// the same.
func TestRDMAP_54_56_57_69_UseAfterInvalidate(t *testing.T) {
	use := map[string]func(st stag.STag) attack{
		"write": func(st stag.STag) attack {
			return fixed("", 0x1100, iwarp.ErrInvalidSTag, wiretest.Write(st, regionTO, "bad"))
		},
		"read": func(st stag.STag) attack {
			a := fixed("", 0x0100, iwarp.ErrInvalidSTag, wiretest.ReadRequest(1, 1, 1, 1, st, regionTO))
			a.tells = wiretest.ReadHeader
			return a
		},
		"invalidate": func(st stag.STag) attack {
			return fixed("", 0x0209, iwarp.ErrInvalidSTag, wiretest.Untagged(0x41, 0x44, uint32(st), 0, 2, 0, ""))
		},
	}
	for name, attack := range use {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				_, recv := v.register(1, stag.LocalWrite, nil)
				require.NoError(t, v.qp.PostRecv(iwarp.RecvWR{ID: 9, Local: []iwarp.SGE{recv.Slice(0, 1)}}))
				v.works()
				mr := v.another(v.pd, anyRemote, v.qp)
				v.p.Send(wiretest.Untagged(0x41, 0x44, uint32(mr.STag()), 0, 1, 0, ""))
				var wcs [1]iwarp.WC
				_, err := v.cq.Wait(testContext(t), wcs[:])
				require.NoError(t, err)
				require.Equal(t, mr.STag(), wcs[0].STag, "the completion tells what was invalidated")
				require.False(t, mr.Valid())
				v.suffers(attack(mr.STag()))
			})
		})
	}
}

// TestRDMAP_42_81_MessageForADeadRegion: this side has invalidated the region of its own posted work. The peer did
// nothing wrong, but its message cannot be placed.
func TestRDMAP_42_81_MessageForADeadRegion(t *testing.T) {
	attacks(t, []attack{
		{name: "the sink of an RDMA Read", code: 0x1100, is: iwarp.ErrInvalidSTag, read: iwarp.StatusLocalProtection, segment: func(v *victim) []byte {
			require.NoError(v, v.sink.Invalidate(context.Background()))
			return wiretest.ReadResponse(0xc1, v.sink.STag(), 0, strings.Repeat("x", sinkLen))
		}},
		{name: "a receive", code: 0x1000, recv: iwarp.StatusLocalAccess, segment: func(v *victim) []byte {
			require.NoError(v, v.recv.Invalidate(context.Background()))
			return wiretest.Send(1, 0, "late")
		}},
	})
}

// TestRDMAP_125_ARCH_33_PeerStopsInTheMiddleOfASegment: Invalidate does not wait for the peer,
// and what comes afterwards is not placed.
func TestRDMAP_125_ARCH_33_PeerStopsInTheMiddleOfASegment(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run(network, func(t *testing.T) {
			v := newLonelyVictim(t)
			qc := &iwarp.QPConfig{PD: v.pd, SendCQ: v.cq, RecvCQ: v.cq}
			v.p, v.qp = initiator(t, v.rnic, network, qc)
			v.p.Send(wiretest.Write(0, 0, ""))
			v.works()
			bad := wiretest.Write(v.mr.STag(), regionTO, "the rest of this comes when it is too late")
			wire := wiretest.FPDU(bad)
			v.p.Write(wire[:len(wire)/2])
			time.Sleep(20 * time.Millisecond) // let it arrive: the test shows less without it, and does not fail

			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			require.NoError(t, v.mr.Invalidate(ctx), "Invalidate returns within a second")
			v.p.Write(wire[len(wire)/2:])
			require.Equal(t, wiretest.Terminate(0x1100, wiretest.DDPHeader, bad), v.p.Segment())
			v.p.WantEOF("the Terminate is the last message")
			v.p.Close()
			v.ended(attack{code: 0x1100, is: iwarp.ErrInvalidSTag})
		})
	}
}
