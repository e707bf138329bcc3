package iwarp_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests: no octet of memory
// that the peer may not read is sent, and the Terminate holds the header of the Request as it came.
func TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests(t *testing.T) {
	attackScript(t, "testdata/hostile/read_request.txt")
}

// TestRDMAP_13_23_MalformedReadRequests.
func TestRDMAP_13_23_MalformedReadRequests(t *testing.T) {
	attackScript(t, "testdata/hostile/read_request_malformed.txt")
}

// TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD: the peer takes no response while it requests more than it may.
func TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD(t *testing.T) {
	for _, ird := range []int{-1, 1, 2, 16} {
		t.Run(fmt.Sprint(ird), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{IRD: ird})
				const size = 4 << 20 // more than the connection and a batch hold
				_, large := v.register(size, stag.RemoteRead, nil)
				may := v.qp.IRD() // one slot for an RTR, although none was wanted and nothing is negotiated
				for msn := range may {
					v.p.Send(wiretest.ReadRequest(uint32(msn+1), 1, 0, size, large.STag(), 0))
				}
				synctest.Wait()
				require.Equal(t, iwarp.StateRTS, v.qp.State(), "IRD Reads are fine")
				v.othersLive() // they have Read queues of their own
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

// TestRDMAP_30_31_32_SEC_16_EmptyReadNamesAnything: that is not an attack.
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
