package main

var local = []attack{
	{
		"ATK-26", "one part of the program fills the CQ of another", "7.1", "1",
		"no CQ is shared unless the application says so",
		[]string{"iwarp.TestSEC_25_NoCQIsSharedUnlessTheApplicationSaysSo"},
		[]string{"SEC-25a"},
	},
	{
		"ATK-27", "one part of the program takes all entries of read queues", "7.2", "each limit",
		"an error that matches ErrLimit",
		[]string{"iwarp.TestRDMAP_131_SEC_29_30_EveryLimitIsHeld"},
		[]string{"SEC-29a", "SEC-30a"},
	},
	{
		"ATK-28", "one part of the program registers memory of another, or uses its objects", "7.3", "each object of another RNIC",
		"refused; a caller can register only a slice that it holds",
		[]string{"stag.TestSEC_31_RegionIsTheSliceAndNoMore", "iwarp.TestRDMAP_128_131_SEC_1_ObjectsStayWithTheirRNIC"},
		[]string{"SEC-31a", "SEC-1a"},
	},
}
