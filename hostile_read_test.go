package iwarp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests: not
// an octet is sent of memory that the peer may not read, and the Terminate holds the
// header of the Request as it came.
func TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests(t *testing.T) {
	read := func(name string, code transport.Code, is error, segment func(v *victim) []byte) attack {
		return attack{name: name, code: code, is: is, tells: wiretest.ReadHeader, segment: segment}
	}
	var list []attack
	for _, x := range deadMRs {
		list = append(list, read(x.name, 0x0100, iwarp.ErrInvalidSTag, func(v *victim) []byte {
			return wiretest.ReadRequest(1, 0x05060708, 0x090a0b0c, 1, x.stag(v), regionTO)
		}))
	}
	for _, x := range foreignMRs {
		list = append(list, read(x.name, 0x0103, iwarp.ErrAccess, func(v *victim) []byte {
			return wiretest.ReadRequest(1, 0x05060708, 0x090a0b0c, 1, x.mr(v).STag(), regionTO)
		}))
	}
	for _, access := range []stag.Access{0, stag.LocalWrite, stag.LocalWrite | stag.RemoteWrite} {
		list = append(list, read(access.String(), 0x0102, iwarp.ErrAccess, func(v *victim) []byte {
			return wiretest.ReadRequest(1, 0x05060708, 0x090a0b0c, 1, v.another(v.pd, access, nil).STag(), regionTO)
		}))
	}
	for _, x := range outside {
		code := transport.Code(0x0101)
		if x.wrap {
			code = 0x0104
		}
		list = append(list, read(x.name, code, iwarp.ErrBounds, func(v *victim) []byte {
			return wiretest.ReadRequest(1, 0x05060708, 0x090a0b0c, uint32(x.n), v.mr.STag(), x.to)
		}))
	}
	list = append(list, read("2^32-1 octets", 0x0101, iwarp.ErrBounds, func(v *victim) []byte {
		return wiretest.ReadRequest(1, 0x05060708, 0x090a0b0c, math.MaxUint32, v.mr.STag(), regionTO)
	}))
	attacks(t, list)
}

// TestRDMAP_13_23_MalformedReadRequests.
func TestRDMAP_13_23_MalformedReadRequests(t *testing.T) {
	bad := func(name string, code transport.Code, is error, change func(b []byte) []byte) attack {
		return attack{name: name, code: code, is: is, segment: func(v *victim) []byte {
			return change(wiretest.ReadRequest(1, 1, 1, 1, v.mr.STag(), regionTO))
		}}
	}
	attacks(t, []attack{
		bad("without L", 0x0207, nil, func(b []byte) []byte { b[0] = 0x01; return b }),
		bad("one octet short", 0x0207, nil, func(b []byte) []byte { return b[:len(b)-1] }),
		bad("no header at all", 0x0207, nil, func(b []byte) []byte { return b[:18] }),
		bad("one octet long", 0x1205, iwarp.ErrBounds, func(b []byte) []byte { return append(b, 0) }),
		bad("MO 1", 0x1204, nil, func(b []byte) []byte { b[17] = 1; return b }),
		bad("MO 2^32-1", 0x1204, nil, func(b []byte) []byte { return setMO(b, math.MaxUint32) }),
		bad("MSN 2", 0x1203, nil, func(b []byte) []byte { b[13] = 2; return b }),
		bad("MSN 0", 0x1203, nil, func(b []byte) []byte { b[13] = 0; return b }),
	})
}

func setMO(b []byte, mo uint32) []byte {
	binary.BigEndian.PutUint32(b[14:], mo)
	return b
}

// TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD: the peer takes no response while it asks
// for more than it may.
func TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD(t *testing.T) {
	for _, ird := range []int{-1, 1, 2, 16} {
		t.Run(fmt.Sprint(ird), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{IRD: ird})
				const size = 4 << 20 // more than the connection and a batch hold
				_, large := v.register(size, stag.RemoteRead, nil)
				may := max(ird, 0)
				for msn := range may {
					v.p.Send(wiretest.ReadRequest(uint32(msn+1), 1, 0, size, large.STag(), 0))
				}
				synctest.Wait()
				require.Equal(t, iwarp.StateRTS, v.qp.State(), "IRD Reads are fine")
				v.othersLive() // they have read queues of their own
				bad := wiretest.ReadRequest(uint32(may+1), 1, 0, size, large.STag(), 0)
				v.p.Send(bad)
				var last []byte
				for last == nil || last[1] == 0x42 {
					last = v.p.Segment()
				}
				require.Equal(t, wiretest.Terminate(0x1203, wiretest.DDPHeader, bad), last, "behind whole segments of responses comes the Terminate")
				v.p.WantEOF("the Terminate is the last message")
				v.p.Close()
				<-v.qp.Done()
				v.wantCause(v.qp.Err(), attack{code: 0x1203})
				v.othersLive()
			})
		})
	}
}

// TestRDMAP_30_31_32_SEC_16_EmptyReadNamesAnything: that is no attack.
func TestRDMAP_30_31_32_SEC_16_EmptyReadNamesAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{})
		for i, src := range []stag.STag{0, math.MaxUint32, v.recv.STag()} {
			v.p.Send(wiretest.ReadRequest(uint32(i+1), 0x05060708, 0x090a0b0c, 0, src, math.MaxUint64))
			v.p.WantSegment("an empty response, to where the peer asked for it", "c1 42 05060708 00000000 090a0b0c")
		}
		require.NoError(t, v.qp.Abort())
		v.othersLive()
	})
}
