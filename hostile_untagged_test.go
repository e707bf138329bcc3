package iwarp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// fixed returns an attack that always has the same segment.
func fixed(name string, code transport.Code, is error, segment []byte) attack {
	return attack{name: name, code: code, is: is, segment: func(*victim) []byte { return segment }}
}

// TestDDP_64_65_66_67_68_73_74_75_76_78_HostileUntaggedSegments.
func TestDDP_64_65_66_67_68_73_74_75_76_78_HostileUntaggedSegments(t *testing.T) {
	attackScript(t, "testdata/hostile/untagged.txt")
}

// TestDDP_51_68_SendLongerThanItsReceive: not even the part that would fit is placed.
func TestDDP_51_68_SendLongerThanItsReceive(t *testing.T) {
	attackScript(t, "testdata/hostile/too_long.txt")
}

// TestRDMAP_44_46_SecondSegmentIsTooLong: only the first segment is placed.
func TestRDMAP_44_46_SecondSegmentIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{})
		v.works()
		v.p.Send(wiretest.Untagged(0x01, 0x43, 0, 0, 1, 0, "good"))
		copy(v.want[recvAt:], "good")
		a := fixed("", 0x1205, iwarp.ErrBounds, wiretest.Send(1, 4, "12345"))
		a.recv = iwarp.StatusLocalLength
		v.suffers(a)
	})
}

// TestDDP_65_77_NoReceiveIsPosted.
func TestDDP_65_77_NoReceiveIsPosted(t *testing.T) {
	for _, payload := range []string{"", "bad"} {
		synctest.Test(t, func(t *testing.T) {
			v := newVictim(t, iwarp.QPConfig{RNRWait: -1})
			bad := wiretest.Send(1, 0, payload)
			v.p.Send(bad)
			require.Equal(t, wiretest.Terminate(0x1202, wiretest.DDPHeader, bad), v.p.Segment())
			v.p.WantEOF("the Terminate is the last message")
			v.p.Close()
			<-v.qp.Done()
			v.wantCause(v.qp.Err(), attack{code: 0x1202, is: iwarp.ErrNoReceive})
			require.Equal(t, v.want, v.arena, "nothing was placed")
			v.othersLive()
		})
	}
}

// TestDDP_19_VersionOfUntaggedSegments.
func TestDDP_19_VersionOfUntaggedSegments(t *testing.T) {
	attackScript(t, "testdata/hostile/untagged_version.txt")
}

// TestDDP_25_60_SegmentShorterThanItsHeader: there is no header to report.
func TestDDP_25_60_SegmentShorterThanItsHeader(t *testing.T) {
	attackScript(t, "testdata/hostile/short.txt")
}

// TestRDMAP_3_88_OtherRDMAPVersions: it is the same for every kind of segment.
func TestRDMAP_3_88_OtherRDMAPVersions(t *testing.T) {
	var list []attack
	for _, rv := range []byte{0x00, 0x80, 0xc0} {
		list = append(list,
			attack{name: fmt.Sprintf("RDMA Write %02x", rv), code: 0x0205, segment: func(v *victim) []byte {
				return wiretest.Tagged(0xc1, rv, v.mr.STag(), regionTO, "bad")
			}},
			attack{name: fmt.Sprintf("Read Response %02x", rv), code: 0x0205, segment: func(v *victim) []byte {
				return wiretest.Tagged(0xc1, rv|2, v.sink.STag(), 0, strings.Repeat("x", sinkLen))
			}},
			fixed(fmt.Sprintf("Send %02x", rv), 0x0205, nil, wiretest.Untagged(0x41, rv|3, 0, 0, 1, 0, "bad")),
			attack{name: fmt.Sprintf("Read Request %02x", rv), code: 0x0205, segment: func(v *victim) []byte {
				b := wiretest.ReadRequest(1, 1, 1, 1, v.mr.STag(), regionTO)
				b[1] = rv | 1
				return b
			}},
		)
	}
	attacks(t, list)
}

// TestRDMAP_6_7_87_UnexpectedOpcodes: every opcode except 7 (Terminate), in every place where it does not belong. For
// opcode 7 see TestRDMAP_72_76_BadTerminateIsNotAnswered.
func TestRDMAP_6_7_87_UnexpectedOpcodes(t *testing.T) {
	const terminateOpcode = 7
	queues := map[byte]uint32{1: 1, 3: 0, 4: 0, 5: 0, 6: 0, 8: 0, 9: 0, 0xa: 1, 0xb: 3}
	var list []attack
	for op := range byte(16) {
		if op == terminateOpcode {
			continue
		}
		if op != 0 && op != 2 {
			list = append(list, attack{name: fmt.Sprintf("%x tagged", op), code: 0x0206, segment: func(v *victim) []byte {
				return wiretest.Tagged(0xc1, 0x40|op, v.mr.STag(), regionTO, "bad")
			}}, attack{name: fmt.Sprintf("%x tagged, without payload", op), code: 0x0206, segment: func(v *victim) []byte {
				return wiretest.Tagged(0xc1, 0x40|op, 0, 0, "")
			}})
		}
		for qn := range uint32(4) {
			if home, untagged := queues[op]; untagged && qn == home {
				continue
			}
			list = append(list, fixed(fmt.Sprintf("%x untagged, QN %d", op, qn), 0x0206, iwarp.ErrUnsupported, wiretest.Untagged(0x41, 0x40|op, 0, qn, 1, 0, "bad")))
		}
	}
	attacks(t, list)
}
