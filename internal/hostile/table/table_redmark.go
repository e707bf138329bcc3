package main

var redmark = []attack{
	{
		"ATK-29", "STags are predicted from STags that the attacker has", "V1, V3", "10^5 STags",
		"all 32 bits of each STag are drawn at random, wherever the attacker's own STags come from",
		[]string{"stag.TestSEC_7_8_EveryRegistrationDrawsAllBits", "stag.TestRDMAP_127_STagsAreHardToPredict", "stag.TestRDMAP_127_NeighbourSTagsAreInvalid"},
		[]string{"SEC-7a", "SEC-8a", "RDMAP-127a", "RDMAP-127b"},
	},
	{
		"ATK-30", "STags are predicted from the state of a process after its start", "V2", "2 processes",
		"STags come from the random source of the system",
		[]string{"stag.TestRDMAP_127_STagsComeFromTheRandomnessOfTheSystem", "stag.TestRDMAP_127_NoTwoProcessesDrawTheSameSTags"},
		[]string{"RDMAP-127c", "RDMAP-127d"},
	},
	{
		"ATK-31", "addresses are predicted from the addresses of other regions", "V4", "regions of each kind",
		"TOs begin at 0, or where the application says: no address of the process is on the wire",
		[]string{"stag.TestVERBS_7_8_ARCH_2_15_BaseTO"},
		[]string{"VERBS-7a", "VERBS-8a"},
	},
	{
		"ATK-32", "numbers of queue pairs and of packets are predicted", "V5, V6", "15 kinds of packets",
		"there are none: a connection is identified by TCP, or by the 32-bit tag of SCTP, which the system or the library draws",
		[]string{"transport/sctpudp.TestDDP_6_ForgedPacketsHaveNoEffect"},
		[]string{"DDP-6a"},
	},
	{
		"ATK-33", "failed attempts go unnoticed", "V7", "each kind of bad access",
		"each ends its stream, and is reported by a completion, an Event and an error",
		[]string{"iwarp.TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites"},
		[]string{"SEC-35a"},
	},
	{
		"ATK-34", "packets are neither encrypted nor authenticated", "V8, A1", "3,000 random ways with rma (10^6 with IWARP_RMA_WIRE); a stream under TLS",
		"TLS and rma protect the data, cm the set-up; plain verbs do not, see security.md",
		[]string{"rma.TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnTheWire", "iwarp.TestARCH_30_SEC_38_QPOverTLS"},
		[]string{"RMA-8h", "RMA-15h", "SEC-38a"},
	},
	{
		"ATK-35", "all queue pairs share one protection domain", "V9", "a PD for each, and STags of one stream",
		"neighbours are kept apart either way",
		[]string{"iwarp.TestSEC_3_4_6_NeighboursAreKeptApart"},
		[]string{"SEC-3b", "SEC-4b"},
	},
	{
		"ATK-36", "the connection of another client is ended", "A2", "5 packets with the peer's address, 10 without",
		"over SCTP without its tag: no effect. TCP under TLS: a RST can end the connection, as with any TCP",
		[]string{"transport/sctpudp.TestDDP_6_ForgedPacketsHaveNoEffect"},
		[]string{"DDP-6a"},
	},
	{
		"ATK-37", "memory is read and written by guessed STags and TOs", "A3",
		"against a table with 16 regions 2 x 10^5 in each of 7 ways (10^7 with IWARP_STAG_GUESSES); over streams 10^3 (10^4 with IWARP_STAG_STREAMS)",
		"no more hits than chance explains, P(more) < 10^-9; each wrong guess ends the stream",
		[]string{"stag.TestAttackGuessedSTags", "stag.TestAttackGuessedOffsets", "iwarp.TestAttackGuessedSTagsOverStreams", "stag.TestRDMAP_127_NeighbourSTagsAreInvalid"},
		[]string{"ATK-37a", "ATK-37b", "ATK-37c", "RDMAP-127a"},
	},
	{
		"ATK-38", "queue pairs are made until resources run out", "A4", "more than MaxQP and MaxHalfOpen",
		"the oldest incomplete set-up makes room; established QPs go on",
		[]string{"internal/setup.TestSEC_2_HalfOpenConnectionsAreBounded", "iwarp.TestRDMAP_131_ARCH_17_SEC_2_30_LimitsHold"},
		[]string{"SEC-2a", "SEC-2b"},
	},
	{
		"ATK-61", "memory is paged in while a peer waits for it, so that others wait too", "V10", "regions on media",
		"sources on media are touched before they are sent, where no other goroutine waits",
		[]string{"ddp.TestSlowSourcesArePrefaulted", "transport.TestSlowPageStopsNoOtherGoroutine"},
		[]string{"ATK-61a"},
	},
	{
		"ATK-62", "a peer slows down others by using up what they share", "A5", "16 Reads whose answers are taken octet by octet; random attackers at ten layers",
		"others go on, each with queues and read slots of its own; go run ./internal/hostile measures how fast",
		[]string{"iwarp.TestAttackSlowReader", "internal/hostile.TestAttackersAtEveryLayer", "iwarp.TestRDMAP_109_ARCH_23_PeerReadsNothing"},
		[]string{"ARCH-23a"},
	},
	{
		"ATK-63", "one-sided operations leave no trace at the victim", "A6", "each refusal of rma, and more than it records",
		"QPStats counts both directions, QPConfig.Trace records the packets, and the server of rma logs what was granted and refused",
		[]string{"rma.TestRMA_41_46_AuditLog", "iwarp.TestSEC_32_IdleStreamsCanBeFoundAndReaped"},
		[]string{"RMA-41a", "SEC-32a"},
	},
}
