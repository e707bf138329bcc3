package main

var network = []attack{
	{
		"ATK-1", "a host connects under the identity of another one", "5.1.1", "10^6 altered frames (5 x 10^4 with -short)",
		"refused before the application learns of it",
		[]string{"cm.TestCM_6_7_8_27_RandomAttackerAtTheFrames", "cm.TestCM_6_7_8_27_RandomAttackerOnTheWire", "cm.TestCM_6_7_8_27_RandomAttacker"},
		[]string{"CM-6b"},
	},
	{
		"ATK-2", "a recorded set-up is sent again", "5.1.1", "10^6",
		"refused as a replay while its time is valid, and for its time afterwards; no Event, no STag in reach",
		[]string{"cm.TestCM_27_28_ReplaysAreRefusedAsLongAsTheirTimeIsGood", "cm.TestCM_27_AMillionReplays", "cm.TestCM_24_ReplayedRequestsDelayNoOne"},
		[]string{"CM-27a", "CM-27b", "CM-24s"},
	},
	{
		"ATK-3", "octets are injected into a stream, or changed in it", "5.1.2, 5.2", "5 ways under TLS; 3,000 random ways with rma (10^6 with IWARP_RMA_WIRE)",
		"under TLS the connection ends, with rma the operation fails; no region changes",
		[]string{"iwarp.TestAttackOnTLS", "rma.TestRMA_6_WrongOuterTag", "rma.TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnTheWire"},
		[]string{"ATK-3a", "RMA-6a", "RMA-6h"},
	},
	{
		"ATK-4", "a host that is not on the path forges SCTP packets", "5.1.2", "15 kinds of packets",
		"the association goes on",
		[]string{"transport/sctpudp.TestDDP_6_ForgedPacketsHaveNoEffect"},
		[]string{"DDP-6a"},
	},
	{
		"ATK-5", "a host stands between client and server", "5.1.3", "each kind of Reply that is not the server's",
		"the client ends the connection before it has sent anything",
		[]string{"cm.TestCM_34_RepliesThatTheClientRefuses", "cm.TestCM_34_RepliesOfOtherSetUps", "cm.TestCM_19_34_ExpectServerStopsAnotherServer"},
		[]string{"CM-34a", "CM-34b"},
	},
	{
		"ATK-6", "the network is read", "5.3", "every octet of a connection",
		"no key is on the wire; TLS and rma hide the data",
		[]string{"regionkey.TestKEY_4_20_NothingPrintsSecrets", "rma.TestKEY_4_NoKeyIsEverOnTheWire", "iwarp.TestARCH_30_SEC_38_QPOverTLS", "iwarp.TestAttackOnTLS"},
		[]string{"KEY-4a", "ARCH-30a"},
	},
}
