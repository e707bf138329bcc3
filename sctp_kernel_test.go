package iwarp

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// needsSCTP skips a test where the kernel has no SCTP. Where it must have,
// IWARP_REQUIRE_SCTP is set.
func needsSCTP(t *testing.T) {
	t.Helper()
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	if errors.Is(err, sctpkernel.ErrNoSCTP) && os.Getenv("IWARP_REQUIRE_SCTP") == "" {
		t.Skip("the kernel has no SCTP; the interop lab runs this test")
	}
	require.NoError(t, err)
	l.End()
}

// TestKernelWithoutSCTP names what does without.
func TestKernelWithoutSCTP(t *testing.T) {
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	if err == nil {
		l.End()
		t.Skip("this kernel has SCTP")
	}
	s := newSide(t, nil)
	_, err = s.rnic.Dial(t.Context(), setup.SCTP, "127.0.0.1:1", &QPConfig{PD: s.pd})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, setup.SCTPUDP)
	_, err = s.rnic.Listen(t.Context(), setup.SCTP, "127.0.0.1:0", nil)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorIs(t, err, sctpkernel.ErrNoSCTP)
	require.ErrorContains(t, err, setup.SCTPUDP)
}

// TestSCTP_16_17_18_19_25_27_51_52_53_56_60_SessionsOfTheKernel: the tests of sessions
// over sockets, over those of the kernel.
func TestSCTP_16_17_18_19_25_27_51_52_53_56_60_SessionsOfTheKernel(t *testing.T) {
	needsSCTP(t)
	was := overSCTP
	t.Cleanup(func() { overSCTP = was })
	overSCTP = setup.SCTP
	for _, test := range []func(*testing.T){
		TestSessionsOverARealSocket,
		TestSCTP_16_27_60_SetupOverSCTP,
		TestSCTP_52_TerminateOverSCTP,
		TestSCTP_25_56_RejectOverSCTP,
		TestSCTP_17_18_TooManyRequestsAreRefused,
		TestUnsupportedOverSCTP,
		TestSCTP_19_51_53_ThousandQPsShareTenAssociations,
	} {
		t.Run(nameOf(test), test)
	}
}

// kernelSessions has pairs and scripted peers meet over the SCTP of the kernel.
var kernelSessions bool

func kernelPair(t testing.TB) (a, b transport.LLP) {
	t.Helper()
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	return meet(t, sctpkernel.NewClient(sctpkernel.Config{}), l)
}

// overTheKernel are operations whose tests wait for what happens. Others look at what has
// happened when all stands still, which only virtual time can tell.
var overTheKernel = []func(*testing.T){
	writesReadsAndSends,
	TestEveryOperation,
	TestDDP_54_58_CloseIsGracefulOnBothSides,
	TestCloseOnBothSidesAtOnce,
	TestBuffersAreRegionsEverywhere,
	TestHelpersHavePrivateCompletions,
	TestRemoteMemoryOfAnotherMind,
	TestVERBS_15_30_WindowIsLentAndGivenBack,
	TestVERBS_27_30_WindowMovesToAnotherQP,
	TestCMT_5_13_52_CommitOfAFile,
	TestCMT_20_29_30_52_FailedCommitLeavesTheQP,
	TestCMT_18_19_PlainMemory,
	TestCMT_53_CloseWaitsForTheFlush,
	TestCMT_54_SlowMediumHoldsUpNobodyElse,
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
	needsSCTP(t)
	t.Cleanup(func() { reordering, kernelSessions = 0, false })
	reordering, kernelSessions = 1, true
	for _, test := range overTheKernel {
		t.Run(nameOf(test), test)
	}
}
