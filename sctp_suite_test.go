package iwarp_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
)

// notOfSessions are the tests of a reset: if several sessions share an association, a session ends only with a Terminate
// message (RFC 5043 section 6).
var notOfSessions = []string{"TestARCH_37_AbortFlushesInPostOrder", "TestDDP_60_61_ConnectionIsReset", "TestVERBS_42_AbortResets"}

// overLosses are operations that wait until what they sent has arrived. Other operations expect it to have arrived at
// the same moment, which needs a network without losses.
var overLosses = []func(*testing.T){
	writesReadsAndSends,
	TestEveryOperation,
	TestDDP_54_58_CloseIsGracefulOnBothSides,
	TestDDP_55_CloseFinishesWhatIsQueued,
	TestFirstCauseStays,
	TestHelpersHavePrivateCompletions,
	TestRemoteMemoryIsBoundedByThePeer,
	TestRDMAP_53_55_89_90_120_126_HostileSendWithInvalidate,
	TestRDMAP_54_56_57_69_UseAfterInvalidate,
	TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests,
	TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD,
	TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites,
	TestRDMAP_72_76_BadTerminateIsNotAnswered,
	TestDDP_64_65_66_67_68_73_74_75_76_78_HostileUntaggedSegments,
	TestEXT_13_18_25_31_45_46_67_69_HostileExtensions,
	TestEXT_20_ARCH_25_WriteIsThereWhenItsImmediateCompletes,
	TestVERBS_9_21_27_28_HostileUseOfWindows,
	TestARCH_38_STagMeansTheSameByEveryAddress,
	TestDDP_4_7_SegmentsKeepTheirBoundariesAndLengths,
	TestPeerHasNoReceive,
}

// withRealClocks are the operations of these that use real time. Where packets are lost they would wait for
// retransmissions, so they run in their own virtual time there.
var withRealClocks = []string{
	"writesReadsAndSends", "TestEveryOperation", "TestEXT_20_ARCH_25_WriteIsThereWhenItsImmediateCompletes",
}

// TestSCTP_44_45_52_OperationsOverSCTP: over a network that loses, duplicates and reorders 0, 1 and 5 % of the packets.
func TestSCTP_44_45_52_OperationsOverSCTP(t *testing.T) {
	t.Cleanup(func() { wiretest.LLP = nil })
	for _, percent := range []int{0, 1, 5} {
		var networks []*wiretest.PacketNetwork
		wiretest.LLP = wiretest.Sessions(func() *wiretest.PacketNetwork {
			networks = append(networks, wiretest.NewPacketNetwork(float64(percent)/100, 7))
			return networks[len(networks)-1]
		})
		tests := operations
		if percent > 0 {
			tests = overLosses
		}
		for _, test := range tests {
			if !slices.Contains(notOfSessions, wiretest.NameOf(test)) {
				run := test
				if percent > 0 && slices.Contains(withRealClocks, wiretest.NameOf(test)) {
					run = func(t *testing.T) { synctest.Test(t, test) }
				}
				t.Run(fmt.Sprintf("%d%%/%s", percent, wiretest.NameOf(test)), run)
			}
		}
		lost := 0
		for _, n := range networks {
			lost += n.Lost()
		}
		require.Equal(t, percent > 0, lost > 0, "%d datagrams were lost", lost)
	}
}
