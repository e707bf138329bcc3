package main

var more = []attack{
	{
		"ATK-39", "half-open floods: connections that never send their Request", "", "more than MaxHalfOpen",
		"honest set-ups go on; the oldest incomplete one is closed",
		[]string{"iwarp.TestSEC_2_42_SlowRequestsDoNotBlockOthers", "cm.TestCM_40_HalfOpen"},
		[]string{"SEC-42a", "CM-40a"},
	},
	{
		"ATK-40", "slow octets during set-up", "", "one octet at a time, with pauses",
		"one timer bounds the whole of it, another one the pauses",
		[]string{
			"iwarp.TestAttackSlowSetUp", "iwarp.TestMPA_75_77_SEC_42_RequestThatNeverEnds", "iwarp.TestSEC_42_RequestThatDoesNotProgress",
			"internal/setup.TestCM_41_DribbledRequestCostsNoSealer",
		},
		[]string{"ATK-40a", "SEC-42e", "SEC-42b", "CM-41a"},
	},
	{
		"ATK-41", "giant lengths", "", "Reads of 2^32-1 octets, chunks of 4 GiB, Private Data of 65,535",
		"refused before anything is allocated for them",
		[]string{"rpcrdma.TestRPR_18_HugeReplyChunk", "mpa.TestMPA_51_58_59_63_71_76_81_83_MalformedRequestClosesTheConnection", "rpcrdma/internal/plan.TestRPR_18_LengthOfAChunk"},
		[]string{"MPA-59a", "RPR-18d"},
	},
	{
		"ATK-42", "lengths of zero", "", "Writes, Reads and Sends of nothing, to STags that do not exist",
		"nothing is read, nothing is written, nothing is told; a Send takes its receive",
		[]string{"iwarp.TestRDMAP_30_31_32_SEC_16_EmptyReadNamesAnything", "rdmap.TestRDMAP_30_ZeroLengthRead", "iwarp.TestRDMAP_49_50_EmptySendTakesOneReceive"},
		[]string{"SEC-16a", "RDMAP-30a", "RDMAP-49a"},
	},
	{
		"ATK-43", "messages are replayed or reordered within a stream", "", "each number that is not the next one",
		"a Terminate, or the operation fails: none has an effect twice",
		[]string{"ddp.TestDDP_19_64_65_66_68_81_BatchesAreChecked", "rma.TestRMA_7_CounterIsLastPlusOne", "iwarp.TestDDP_64_65_66_67_68_73_74_75_76_78_HostileUntaggedSegments"},
		[]string{"DDP-66b", "RMA-7a"},
	},
	{
		"ATK-44", "floods before authentication", "", "10 times what a source may fail",
		"beyond the budget of a source nothing is computed, and later nothing is answered; others are served",
		[]string{"cm.TestCM_39_TenTimesOverIsClosedWithoutAReply", "cm.TestCM_39_BudgetOfHMACs", "cm.TestCM_24_27_40_FloodOfBadRequests"},
		[]string{"CM-39b", "CM-39f"},
	},
	{
		"ATK-45", "a peer reads nothing, or stops in the middle", "", "each phase",
		"its own connection waits, and ends in bounded time when it is closed",
		[]string{"iwarp.TestRDMAP_109_ARCH_23_PeerReadsNothing", "iwarp.TestRDMAP_80_ConnectionThatTakesNothingMore", "iwarp.TestRDMAP_79_80_PeerThatDoesNotEnd"},
		[]string{"ARCH-23a", "RDMAP-80b", "RDMAP-79a"},
	},
	{
		"ATK-46", "INITs of SCTP from addresses that are not the sender's", "", "10^4",
		"each is answered by a cookie and forgotten",
		[]string{"transport/sctpudp.TestSpoofedInitsCostNothing", "transport/sctpudp.TestCookiesProveAnAddress"},
		[]string{"ATK-46a"},
	},
	{
		"ATK-47", "a method of the application's Buffer fails or panics", "", "each method, in each operation",
		"its QP ends with a Terminate that tells of a local catastrophe; the process and the other QPs go on",
		[]string{"iwarp.TestBufferThatPanicsEndsItsQP", "rma.TestRMA_27_FailingBuffer"},
		[]string{"ATK-47a", "RMA-27b"},
	},
	{
		"ATK-48", "a method of the application's Buffer does not return", "", "each way to end a QP",
		"the ends are bounded by Config.CloseTimeout, and tell so",
		[]string{"iwarp.TestEndsAreBoundedWhileABufferWorks"},
		[]string{"ATK-48a"},
	},
	{
		"ATK-49", "a Flusher of the application is slow or fails", "", "a flood of Commits at one backing",
		"the Commits wait, other streams do not; a failure is a status, and the stream goes on",
		[]string{"commit.TestCMT_48_54_FloodIsBounded", "commit.TestCMT_29_30_33_MediaError", "iwarp.TestCMT_54_SlowMediumDelaysNoOtherStream"},
		[]string{"CMT-48a", "CMT-29a"},
	},
	{
		"ATK-50", "capsules of NVMe that break the rules", "", "250 hosts of some 20 messages each (more by IWARP_NVME_HOSTILE)",
		"a status or the end of that queue; no block of another namespace changes",
		[]string{"examples/nvme/target.TestNVME_28_SinksAreOutOfReach", "examples/nvme/target.TestNVME_28_ForgedResponses", "examples/nvme/target.TestNVME_90_HostileHost"},
		[]string{"NVME-28p", "NVME-28q"},
	},
	{
		"ATK-51", "messages of rma that break the rules, by a client with keys and by a server", "", "200 of each (more by IWARP_RMA_HOSTILE)",
		"that operation fails, or that connection ends; nothing is left of it",
		[]string{"rma.TestRMA_28_42_HostileClient", "rma.TestRMA_28_42_HostileServer", "rma.TestRMA_42_FloodOfWrongKeys"},
		[]string{"RMA-28k", "RMA-28m"},
	},
	{
		"ATK-52", "a Terminate that is malformed, or an answer to a Terminate", "", "each length and code",
		"it is not answered; the stream ends once",
		[]string{"rdmap.TestRDMAP_76_InvalidTerminateIsNotAnswered", "rdmap.TestRDMAP_71_72_TerminateIsAlwaysTaken", "iwarp.TestRDMAP_72_76_BadTerminateIsNotAnswered"},
		[]string{"RDMAP-76a", "RDMAP-71a"},
	},
	{
		"ATK-53", "a Flusher, a Sync or a check of the application panics", "", "each, three times",
		"the Commit fails, the log has the stack, and the process and the stream go on",
		[]string{"iwarp.TestAttackFlusherThatPanics"},
		[]string{"ATK-53a", "ATK-53b", "ATK-53c"},
	},
	{
		"ATK-54", "amplification by packets with a forged source", "", "9 kinds of packets",
		"over TCP nothing before the handshake; over UDP at most 3.5 octets for one, less than 3 with the headers, and nothing is kept",
		[]string{"transport/sctpudp.TestAttackAmplification"},
		[]string{"ATK-54a"},
	},
	{
		"ATK-55", "amplification by RDMA Reads: small requests, large answers", "", "an IRD of 2, 4 MiB each",
		"at most the IRD times what the peer may read is under way, at the pace of the peer; QPStats tells the ratio",
		[]string{"iwarp.TestAttackAmplifiedReads", "iwarp.TestRDMAP_37_116_130_SEC_26_28_MoreReadsThanIRD"},
		[]string{"ATK-55a", "SEC-28a"},
	},
	{
		"ATK-56", "slow octets in each phase of a stream, and answers that are taken slowly", "", "7 phases; 16 Reads of 1 MiB, an octet a second",
		"no other queue pair waits; regions are revoked, and the queue pair ends, without the peer",
		[]string{"iwarp.TestAttackSlowStream", "iwarp.TestAttackSlowReader"},
		[]string{"ATK-56a", "ATK-56b"},
	},
	{
		"ATK-57", "connections are made and left, in each phase", "", "500, by FIN and by RST",
		"nothing is left of them; each end is told, or counted",
		[]string{"iwarp.TestAttackChurn"},
		[]string{"ATK-57a"},
	},
	{
		"ATK-58", "storms of Terminates", "", "100 streams with up to 20 each",
		"each stream ends once, with one Event, and answers nothing",
		[]string{"iwarp.TestAttackTerminateStorm"},
		[]string{"ATK-58a"},
	},
	{
		"ATK-59", "bombs of private data: lengths that are not there, or beyond 512", "", "513 and 65,535 octets; 512 that come slowly",
		"the connection is closed before more than 532 octets are read",
		[]string{"iwarp.TestMPA_51_58_59_62_63_71_74_76_81_83_BadRequests", "mpa.TestMPA_51_58_59_63_71_76_81_83_MalformedRequestClosesTheConnection", "iwarp.TestAttackSlowSetUp"},
		[]string{"MPA-59a", "ATK-40a"},
	},
	{
		"ATK-60", "random attackers at ten layers, which know STags that they may not use", "", "600 conversations in the tests; as long as wanted by go run ./internal/hostile",
		"no memory changes but the attackers' own; honest peers go on at their pace, and none of their Events is lost",
		[]string{"internal/hostile.TestAttackersAtEveryLayer"},
		[]string{"ATK-60a", "ATK-60b"},
	},
}
