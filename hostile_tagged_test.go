package iwarp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

const anyRemote = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead

// TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites: neither the segment in error
// nor what comes after it is placed.
func TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites(t *testing.T) {
	attackScript(t, "testdata/hostile/write.txt")
}

// TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight: RFC 5041 has no code for this error, so the nearest one is sent.
func TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight(t *testing.T) {
	attackScript(t, "testdata/hostile/write_right.txt")
}

// TestDDP_19_41_VersionOfTaggedSegments.
func TestDDP_19_41_VersionOfTaggedSegments(t *testing.T) {
	attackScript(t, "testdata/hostile/tagged_version.txt")
}

// TestRDMAP_40_41_42_HostileReadResponses: a response to an RDMA Read that differs from the request is not placed
// anywhere.
func TestRDMAP_40_41_42_HostileReadResponses(t *testing.T) {
	attackScript(t, "testdata/hostile/read_response.txt")
}

// TestRDMAP_42_87_ReadResponseWithoutARead: it is an unexpected opcode.
func TestRDMAP_42_87_ReadResponseWithoutARead(t *testing.T) {
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
