package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/wiretest"
)

// overTheKernel are operations whose tests wait for what happens. Other tests check the state when everything stands
// still, which only virtual time can determine.
var overTheKernel = []func(*testing.T){
	writesReadsAndSends,
	TestEveryOperation,
	TestDDP_54_58_CloseIsGracefulOnBothSides,
	TestCloseOnBothSidesAtOnce,
	TestBuffersAreRegionsEverywhere,
	TestHelpersHavePrivateCompletions,
	TestRemoteMemoryIsBoundedByThePeer,
	TestVERBS_15_30_WindowIsLentAndGivenBack,
	TestVERBS_27_30_WindowMovesToAnotherQP,
	TestCMT_5_13_52_CommitOfAFile,
	TestCMT_20_29_30_52_FailedCommitLeavesTheQP,
	TestCMT_18_19_PlainMemory,
	TestCMT_53_CloseWaitsForTheFlush,
	TestCMT_54_SlowMediumDelaysNoOtherStream,
	TestCMT_55_DurableOnReceive,
	TestCMT_57_WithdrawingARegion,
	TestWriteThroughAndIntegrity,
	TestARCH_1_2_BuffersOfAnyKindAreServedAlike,
	TestARCH_38_STagMeansTheSameByEveryAddress,
	TestEXT_44_45_TargetThatIsNotAligned,
	TestEXT_20_ARCH_25_WriteIsThereWhenItsImmediateCompletes,
	TestCompareSwapMakesALock,
	TestEXT_48_49_CountersOfManyStreams,
	TestCloseAnswersAtomicsFirst,
	TestARCH_22_ManyGoroutinesOnOneQP,
}

// TestSCTP_44_52_OperationsOverTheKernel: over sessions of the kernel, without set-up.
func TestSCTP_44_52_OperationsOverTheKernel(t *testing.T) {
	wiretest.NeedsSCTP(t)
	t.Cleanup(func() { wiretest.LLP = nil })
	wiretest.LLP = wiretest.KernelSessions
	for _, test := range overTheKernel {
		t.Run(wiretest.NameOf(test), test)
	}
}
