package main

// messages are programs that test what a received message guarantees about earlier operations.
var messages = []program{
	{
		name: "Write, Write, Send",
		rule: "RFC 5040 5.5 (5), (10), (16)",
		says: "When the receive of a Send completes, all RDMA Writes that the peer posted before it are in place.",
		threads: [][]op{{
			write(nearA, x, 1), write(nearA, y, 1), send(nearA, 1).named("m").finds(sees("x", x), sees("y", y)),
		}},
		outcomes: []outcome{{when: "m=1 x=1 y=1", is: required}, {is: forbidden}},
	},
	{
		name: "Write, solicited Send, Send",
		rule: "RFC 5040 5.3, 5.5 (10)",
		says: "A Send with Solicited Event is ordered like any other.",
		threads: [][]op{{
			write(nearA, x, 1), send(nearA, 1).solicited().named("m1").finds(sees("x", x)), send(nearA, 2).named("m2"),
		}},
		outcomes: []outcome{{when: "m1=1 x=1 m2=2", is: required}, {is: forbidden}},
	},
	{
		name:     "Write with Immediate",
		rule:     "RFC 7306 6, 7",
		says:     "When the receive of Immediate Data completes, all RDMA Writes that the peer posted before it are in place.",
		threads:  [][]op{{write(nearA, x, 1), writeImmediate(nearA, y, 1).named("m").finds(sees("x", x), sees("y", y))}},
		outcomes: []outcome{{when: "m=1 x=1 y=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Send, Immediate, Send",
		rule:     "RFC 5040 5.5 (10); RFC 7306 6.3, 7",
		says:     "Sends and Immediate Data take the receives of the peer in the order in which they were posted.",
		threads:  [][]op{{send(nearA, 1).named("m1"), immediate(nearA, 2).named("m2"), send(nearA, 1).named("m3")}},
		outcomes: []outcome{{when: "m1=1 m2=2 m3=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Write, Send with Invalidate",
		rule:     "RFC 5040 5.3, 5.5 (10)",
		says:     "When the receive of a Send with Invalidate completes, earlier Writes are in place, including those by the STag that it invalidates, and the STag is invalid.",
		threads:  [][]op{{write(nearA, w, 1), sendInvalidate(nearA, w).named("m").finds(sees("w", w), isValid("valid", w))}},
		outcomes: []outcome{{when: "m=1 w=1 valid=0", is: required}, {is: forbidden}},
	},
	{
		name:    "Write, Write of the same octets",
		rule:    "RFC 5040 5.5 (3)",
		says:    "Two RDMA Writes of the same octets may be placed in any order, piece by piece. Write other octets, or put a Read and a fence between the two.",
		threads: [][]op{{write(nearA, x, 1), write(nearA, x, 2), send(nearA, 1).finds(sees("x", x))}},
		outcomes: []outcome{
			{when: "x=2", is: required},
			{when: "x=0", is: forbidden},
			{when: "x=1", is: allowed, seen: reordering, never: inOrder, why: placedInOrder},
			{when: "x=t", is: allowed, seen: reordering, never: inOrder, why: placedInOrder},
		},
	},
	{
		name: "Write, Read of nothing, fenced Write of the same octets",
		rule: "RFC 5040 5.5 (12), appendix B note (1)",
		says: "A Read of no octets, and a ReadFence on what follows, force the order of two Writes.",
		threads: [][]op{{
			write(nearA, x, 1), readNothing(nearA), write(nearA, x, 2).fenced(), send(nearA, 1).finds(sees("x", x)),
		}},
		outcomes: []outcome{{when: "x=2", is: required}, {is: forbidden}},
	},
	{
		name: "All kinds of operations",
		rule: "RFC 5040 5.5 (13), (15)",
		says: "Work requests of one QP complete in the order in which they were posted, whatever their kinds.",
		threads: [][]op{{
			read(nearA, x), write(nearA, y, 1), fetchAdd(nearA, c, 1).named("r1"), send(nearA, 1).named("m"),
			commitOf(nearA, p), immediate(nearA, 2), compareSwap(nearA, d, 2).named("r2"),
		}},
		outcomes: []outcome{{when: "r1=0 m=1 r2=0", is: required}, {is: forbidden}},
	},
}

// placedInOrder is why an outcome does not occur over TCP.
const placedInOrder = "over TCP segments arrive, and are placed, in order"
