package main

var denial = []attack{
	{
		"ATK-17", "objects are made until resources run out", "6.4.1", "each kind of object",
		"an error that matches ErrLimit; existing objects go on",
		[]string{"iwarp.TestRDMAP_131_ARCH_17_SEC_2_30_LimitsHold"},
		[]string{"SEC-2b", "SEC-2c"},
	},
	{
		"ATK-18", "connections that do nothing", "6.4.2", "1",
		"their counters show them, and an abort frees what a connection held",
		[]string{"iwarp.TestSEC_32_IdleStreamsCanBeFoundAndReaped"},
		[]string{"SEC-32a"},
	},
	{
		"ATK-19", "one peer takes the receives that several share", "6.4.3.1", "more messages than receives",
		"it gets RecvDepth of them; low water and its share are reported",
		[]string{
			"iwarp.TestRDMAP_133_VERBS_88_ARCH_12_SEC_19_OnePeerCannotTakeAllReceives", "iwarp.TestVERBS_85_SEC_20_SRQLimit",
			"iwarp.TestVERBS_86_88_SEC_19_21_ReceivesHeldByOnePeer",
		},
		[]string{"SEC-19a", "SEC-20a", "SEC-21a"},
	},
	{
		"ATK-20", "a shared CQ is filled", "6.4.3.2", "all that can be posted",
		"a CQ as deep as all its queues together does not overflow; a smaller one is refused",
		[]string{"iwarp.TestSEC_23_CQThatIsTooSmallIsRefused", "iwarp.TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow", "iwarp.TestSEC_22_CQDepthIsLimited"},
		[]string{"SEC-23a", "SEC-22a"},
	},
	{
		"ATK-21", "more RDMA Reads than the IRD", "6.4.3.3", "IRDs of 0, 1, 2 and 16, and one more",
		"a Terminate of that stream; others have read queues of their own",
		[]string{"iwarp.TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD", "iwarp.TestRDMAP_37_110_111_BothSidesFloodReads"},
		[]string{"SEC-26a", "SEC-28a"},
	},
	{
		"ATK-22", "slow code paths", "6.4.4", "messages without a receive; segments in any order",
		"they are counted; other streams do not wait",
		[]string{"iwarp.TestSEC_33_WaitsForAReceiveAreCounted", "iwarp.TestARCH_5_28_OperationsOverALayerThatReorders"},
		[]string{"SEC-33a", "ARCH-5a"},
	},
	{
		"ATK-23", "a Send with Invalidate names an STag that several streams share", "6.4.5", "each kind of STag",
		"a Terminate of the attacker's stream; the STag stays valid",
		[]string{
			"iwarp.TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate", "stag.TestSEC_17_VERBS_18_22_RemoteInvalidate",
			"iwarp.TestRDMAP_53_55_89_90_120_126_HostileSendWithInvalidate",
		},
		[]string{"SEC-3a", "SEC-17a", "RDMAP-89a"},
	},
	{
		"ATK-24", "the CQ of one stream overflows", "6.4.6", "1",
		"only the stream that loses a completion ends",
		[]string{"iwarp.TestRDMAP_129_SEC_24_VERBS_79_OverflowEndsOnlyTheQPThatLosesACompletion"},
		[]string{"SEC-24a", "RDMAP-129a"},
	},
	{
		"ATK-25", "a peer tries to get rights that it was not given", "6.5", "each right, each opcode",
		"no message grants a right, loads code or changes a configuration",
		[]string{"iwarp.TestRDMAP_21_83_86_97_ARCH_19_WriteWithoutTheRight", "rdmap.TestRDMAP_87_REG_8_9_UnknownOpcode"},
		[]string{"ARCH-19a", "RDMAP-87a"},
	},
}
