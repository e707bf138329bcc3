package iwarp_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/wiretest"
)

// operations are the tests of a QP that hold over any lower layer. They exclude the tests of
// MPA itself and of data after an error: where segments overtake one another, such data
// may be placed before the error is seen (RFC 5041 section 5.3).
var operations = []func(*testing.T){
	writesReadsAndSends,
	TestEveryOperation,

	// close_test.go
	TestDDP_54_58_CloseIsGracefulOnBothSides,
	TestCloseOnBothSidesAtOnce,
	TestDDP_55_CloseFinishesWhatIsQueued,
	TestCloseTimesOut,
	TestARCH_37_AbortFlushesInPostOrder,
	TestDDP_61_62_VERBS_39_PeerEndsWithWorkOutstanding,
	TestDDP_52_58_VERBS_38_PeerEndsWhenIdle,
	TestDDP_60_61_ConnectionIsReset,
	TestFirstCauseStays,

	// cq_test.go
	TestRDMAP_129_SEC_24_VERBS_79_OverflowEndsOnlyTheQPThatLosesACompletion,

	// drain_test.go
	TestDrainWaitsForWhatWasPostedBefore,
	TestDrainOfAnEndingQPWaitsForItsEnd,

	// early_test.go
	TestVERBS_34_WorkPostedWhileIdleWaits,

	// fastreg_test.go
	TestVERBS_1_13_15_20_RegisterReadInvalidate,
	TestVERBS_13_14_PeerUsesRegistrations,
	TestVERBS_12_14_RegisterThatIsRefused,
	TestVERBS_24_RegionIsInvalidatedBeforeItsWork,
	TestBuffersAreRegionsEverywhere,

	// helpers_test.go
	TestHelpersHavePrivateCompletions,
	TestHelpersReportWhatWentWrong,
	TestCancelledContextStopsTheWaiting,
	TestHelpersWaitForRoom,
	TestRemoteMemoryIsBoundedByThePeer,

	// hostile_flood_test.go
	TestRDMAP_109_ARCH_23_PeerReadsNothing,

	// hostile_invalidate_test.go
	TestRDMAP_53_55_89_90_120_126_HostileSendWithInvalidate,
	TestRDMAP_54_56_57_69_UseAfterInvalidate,
	TestRDMAP_42_81_MessageForADeadRegion,

	// hostile_linger_test.go
	TestDDP_65_77_ARCH_11_WaitForAReceiveDelaysNothingElse,

	// hostile_read_test.go
	TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests,
	TestRDMAP_13_23_MalformedReadRequests,
	TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD,
	TestRDMAP_30_31_32_SEC_16_EmptyReadNamesAnything,

	// hostile_tagged_test.go
	TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites,
	TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight,
	TestDDP_19_41_VersionOfTaggedSegments,
	TestRDMAP_42_87_ReadResponseWithoutARead,

	// hostile_terminate_test.go
	TestRDMAP_72_76_BadTerminateIsNotAnswered,
	TestRDMAP_62_72_AnyTerminateIsTaken,

	// hostile_untagged_test.go
	TestDDP_64_65_66_67_68_73_74_75_76_78_HostileUntaggedSegments,
	TestDDP_51_68_SendLongerThanItsReceive,
	TestRDMAP_44_46_SecondSegmentIsTooLong,
	TestDDP_65_77_NoReceiveIsPosted,
	TestDDP_19_VersionOfUntaggedSegments,
	TestDDP_25_60_SegmentShorterThanItsHeader,
	TestRDMAP_3_88_OtherRDMAPVersions,
	TestRDMAP_6_7_87_UnexpectedOpcodes,

	// hostile_window_test.go
	TestVERBS_9_21_27_28_HostileUseOfWindows,
	TestVERBS_17_18_22_27_HostileInvalidateOfWindows,

	// mw_test.go
	TestVERBS_15_30_WindowIsLentAndGivenBack,
	TestVERBS_27_30_WindowMovesToAnotherQP,
	TestVERBS_26_BindThatIsRefused,
	TestVERBS_10_AccessOfNoLengthIsNotChecked,
	TestVERBS_33_SinkOfAReadIsNotThePeersToWrite,

	// commit_test.go
	TestCMT_5_13_52_CommitOfAFile,
	TestCMT_20_29_30_52_FailedCommitLeavesTheQP,
	TestCMT_18_19_PlainMemory,
	TestCMT_53_CloseWaitsForTheFlush,
	TestCMT_54_SlowMediumDelaysNoOtherStream,
	TestCMT_55_DurableOnReceive,
	TestCMT_57_WithdrawingARegion,
	TestWriteThroughAndIntegrity,

	// order_test.go
	TestRDMAP_105_106_110_VERBS_63_CompletionsAreInPostOrder,
	TestVERBS_64_ReadFence,
	TestVERBS_65_LocalFence,
	TestRDMAP_114_130_SEC_27_OutstandingReadsAreBounded,
	TestVERBS_67_ReadWithoutORD,
	TestRDMAP_100_ARCH_29_ReceiveImpliesEarlierWrites,
	TestRDMAP_57_CompletionOfAReceive,
	TestRDMAP_51_57_VERBS_77_SolicitedSendsOfOneRead,
	TestVERBS_41_74_75_AttributionOfATerminate,

	// peer_conversation_test.go
	TestRDMAP_49_50_EmptySendTakesOneReceive,

	// post_test.go
	TestVERBS_55_90_PostOfAListStopsAtTheFirstError,
	TestVERBS_56_62_PostToAFullQueueIsRefused,
	TestVERBS_57_59_60_72_90_PostChecksEveryField,
	TestVERBS_60_PostedInlineDataIsCopied,
	TestVERBS_61_62_UnsignaledWorkCompletesOnlyIfItFails,
	TestVERBS_72_SolicitedAndInvalidatingSends,
	TestVERBS_57_58_GatherAndScatter,
	TestVERBS_58_OperationsOfNoLength,
	TestVERBS_20_ReadIntoARegionThatIsInvalidatedAfterwards,
	TestLocalInvalidateTakesAwayTheAccess,
	TestVERBS_52_RegionRevokedWhileItsWorkWaits,

	// rfc4296_test.go
	TestARCH_1_2_BuffersOfAnyKindAreServedAlike,
	TestARCH_3_BufferThatCannotBeReadTakesWrites,
	TestARCH_38_STagMeansTheSameByEveryAddress,

	// rfc5040_qp_test.go
	TestRDMAP_38_75_81_ARCH_36_ErrorsReachTheApplication,
	TestRDMAP_113_IRDCanBeSet,
	TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate,
	TestDDP_53_62_63_76_TerminateGoesOutFirst,

	// rfc5041_3_llp_test.go
	TestDDP_3_61_WorkThatCouldNotBeTransferredIsReported,
	TestDDP_4_7_SegmentsKeepTheirBoundariesAndLengths,
	TestDDP_8_10_StreamInErrorCarriesNoMoreAndItsConnectionEnds,
	TestDDP_9_GracefulEndIsIndicated,
	TestRDMAP_80_AbortTearsDownAtOnce,

	// rfc5042_test.go
	TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow,
	TestSEC_33_WaitsForAReceiveAreCounted,

	// rfc7306_test.go
	TestEXT_28_37_39_40_54_WorkRequestsOfAtomics,
	TestEXT_9_12_16_20_WorkRequestsOfImmediateData,
	TestEXT_11_14_16_17_21_ReceivesOfImmediateData,
	TestEXT_11_ImmediateDataTakesASharedReceive,
	TestEXT_13_18_25_31_45_46_67_69_HostileExtensions,
	TestEXT_7_PeerThatDoesNotKnowAtomics,
	TestEXT_7_18_PeerThatDoesNotKnowImmediateData,
	TestEXT_44_45_TargetThatIsNotAligned,
	TestEXT_20_ARCH_25_WriteIsThereWhenItsImmediateCompletes,
	TestCompareSwapMakesALock,
	TestEXT_48_49_CountersOfManyStreams,
	TestCloseAnswersAtomicsFirst,

	// rnr_test.go
	TestARCH_11_MessageWaitsNoLongerThanRNRWait,
	TestPeerHasNoReceive,
	TestVERBS_71_ReceiveTooSmallForItsMessage,
	TestReceiveWhoseRegionIsGone,

	// srq_test.go
	TestVERBS_81_ARCH_9_10_FirstMessageTakesTheOldestReceive,
	TestVERBS_84_FailedQPLeavesTheOthersTheirReceives,
	TestVERBS_85_SEC_20_SRQLimit,
	TestVERBS_86_88_SEC_19_21_ReceivesHeldByOnePeer,
	TestRDMAP_133_VERBS_88_ARCH_12_SEC_19_OnePeerCannotTakeAllReceives,
	TestMessagesWaitForASharedReceive,
	TestManyPeersShareFewReceives,

	// states_test.go
	TestVERBS_43_46_QPInTerminateIgnoresSegmentsAndRefusesWork,
	TestVERBS_45_46_ErrorIsFinal,
	TestVERBS_47_BadClose,
	TestVERBS_41_47_SegmentsAfterOurFIN,
	TestVERBS_42_AbortResets,

	// stress_test.go
	TestARCH_22_ManyGoroutinesOnOneQP,
}

// TestARCH_5_28_OperationsOverALayerThatReorders: RFC 5040 and RFC 5041 do not require that segments come in order. Each
// seed gives another order.
func TestARCH_5_28_OperationsOverALayerThatReorders(t *testing.T) {
	t.Cleanup(func() { wiretest.LLP = nil })
	for seed := range uint64(2) {
		wiretest.LLP = wiretest.Records(seed + 1)
		for _, test := range operations {
			t.Run(fmt.Sprintf("%d/%s", seed+1, wiretest.NameOf(test)), test)
		}
	}
}

func writesReadsAndSends(t *testing.T) { writeReadSend(t, pairConfig{}) }
