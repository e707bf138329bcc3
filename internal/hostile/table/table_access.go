package main

var access = []attack{
	{
		"ATK-7", "an STag of another stream is used", "6.1.1", "Write, Read, Read Response, Invalidate",
		"a Terminate of the attacker's stream; the memory does not change",
		[]string{"stag.TestSEC_6_STagOfAnotherStreamIsOfNoUse", "iwarp.TestSEC_3_4_6_NeighboursAreKeptApart"},
		[]string{"SEC-6a", "SEC-4b"},
	},
	{
		"ATK-8", "an STag of another protection domain is used", "6.1.1", "Write, Read, Read Response, Invalidate",
		"as above",
		[]string{"stag.TestSEC_5_VERBS_9_STagOfAnotherPDIsOfNoUse", "iwarp.TestSEC_3_4_6_NeighboursAreKeptApart"},
		[]string{"SEC-5a", "SEC-5b", "SEC-3b"},
	},
	{
		"ATK-9", "an RDMA Write or a Read Response writes octets beside a buffer", "6.2.1", "each border, one octet off",
		"a Terminate; no octet changes, in the buffer or beside it",
		[]string{
			"stag.TestSEC_10_11_OctetsBesideTheRegionStay", "rdmap.TestRDMAP_41_42_ResponseThatIsInNoSink", "iwarp.TestRDMAP_40_41_42_HostileReadResponses",
			"iwarp.TestDDP_69_70_71_72_73_74_75_76_78_79_80_82_ARCH_17_18_31_35_41_SEC_18_35_HostileWrites",
		},
		[]string{"SEC-10a", "SEC-10b", "RDMAP-41a", "SEC-18a"},
	},
	{
		"ATK-10", "a buffer is changed after its access was revoked, or while it is being revoked", "6.2.2", "before, during and after",
		"nothing is placed once the revocation has returned",
		[]string{
			"stag.TestSEC_12_RevokedBufferDoesNotChange", "iwarp.TestRDMAP_54_56_57_69_UseAfterInvalidate", "iwarp.TestRDMAP_125_ARCH_33_PeerStopsInTheMiddleOfASegment",
			"stag.TestVERBS_21_WindowsAreRevokedUnderFire",
		},
		[]string{"SEC-12a", "SEC-12b", "ARCH-33a"},
	},
	{
		"ATK-11", "one buffer is reached by several STags", "6.2.3, 6.3.6", "two regions that overlap",
		"each STag has its own rights, and is revoked separately",
		[]string{"stag.TestVERBS_11_ARCH_13_14_OverlappingRegionsAreIndependent"},
		[]string{"ARCH-13a", "VERBS-11a"},
	},
	{
		"ATK-12", "memory outside a buffer is read", "6.3.1", "each border, one octet off",
		"a Terminate that contains the Request; no octet is sent",
		[]string{"iwarp.TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests"},
		[]string{"SEC-11a"},
	},
	{
		"ATK-13", "stale data is read", "6.3.2", "a right that was not granted yet, or was withdrawn",
		"nothing can be read before the right is granted. The application is responsible for what the memory holds then",
		[]string{"stag.TestSEC_14_RightsAreGrantedAndRevoked"},
		[]string{"SEC-14a", "SEC-14b"},
	},
	{
		"ATK-14", "a buffer is used after the transfer", "6.3.3", "Writes, Reads and Sends with Invalidate after it, by a peer that stalls",
		"the revocation takes effect without waiting for the peer",
		[]string{"iwarp.TestVERBS_21_WindowIsRevokedFromAStalledPeer", "iwarp.TestVERBS_17_18_22_27_HostileInvalidateOfWindows", "stag.TestVERBS_21_NothingIsPlacedThroughARevokedWindow"},
		[]string{"VERBS-21a", "VERBS-22b"},
	},
	{
		"ATK-15", "other data are read through a valid STag", "6.3.4", "each border of a window in its region",
		"an STag reaches the octets that were registered or bound, and no others",
		[]string{"stag.TestSEC_31_RegionIsTheSliceAndNoMore", "iwarp.TestVERBS_9_21_27_28_HostileUseOfWindows"},
		[]string{"SEC-31a", "SEC-31b", "VERBS-9c"},
	},
	{
		"ATK-16", "an RDMA Read from a buffer that is only for Writes", "6.3.5", "each right alone",
		"a Terminate; no octet is sent",
		[]string{"iwarp.TestRDMAP_33_66_68_69_81_84_91_92_93_94_95_96_120_121_122_ARCH_35_41_SEC_11_15_HostileReadRequests"},
		[]string{"SEC-15a"},
	},
}
