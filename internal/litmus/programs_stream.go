package main

// streamPrograms test two streams between the same hosts.
var streamPrograms = []program{
	{
		name:    "Write on A, Read on B",
		rule:    "RFC 5040 5.5 (1)",
		says:    "There is no order between two QPs. A Read on one may return any part of a Write on the other.",
		threads: [][]op{{write(nearA, x, 1), read(nearB, x).named("r")}},
		outcomes: []outcome{
			{when: "r=0", is: allowed, seen: everywhere},
			{when: "r=1", is: required},
			{when: "r=t", is: allowed, seen: reordering, why: shortTime},
			{is: forbidden},
		},
	},
	{
		name:    "Write on A, wait, Read on B",
		rule:    "RFC 5040 5.5 (9), (14)",
		says:    "The completion of a Write means that its source may be used again. It does not mean that the Write has arrived.",
		threads: [][]op{{write(nearA, x, 1), wait, read(nearB, x).named("r")}},
		outcomes: []outcome{
			{when: "r=0", is: allowed, seen: everywhere},
			{when: "r=1", is: required},
			{when: "r=t", is: allowed, why: shortTime},
			{is: forbidden},
		},
	},
	{
		name:     "Write on A, Read of nothing, wait, Read on B",
		rule:     "RFC 5040 5.5 (12), appendix B note (1)",
		says:     "The completion of a Read, even of no octets, means that all earlier Writes of the same QP are in place for every reader.",
		threads:  [][]op{{write(nearA, x, 1), readNothing(nearA), wait, read(nearB, x).named("r")}},
		outcomes: []outcome{{when: "r=1", is: required}, {is: forbidden}},
	},
	{
		name:    "Write x, Write y | Read y, Read x",
		rule:    "RFC 5040 5.5 (1), (3), (5)",
		says:    "Another QP may see the second of two Writes but not the first. A Write is no flag for an earlier Write.",
		threads: [][]op{{write(nearA, x, 1), write(nearA, y, 1)}, {read(nearB, y).named("y"), read(nearB, x).fenced().named("x")}},
		outcomes: []outcome{
			{when: "y=1 x=0", is: allowed, seen: reordering, never: inOrder, why: placedInOrder},
			{when: "y=1 x=1", is: required},
			{is: allowed, seen: everywhere},
		},
	},
	{
		name:    "Write x | Read x, Read x",
		rule:    "RFC 5040 5.5 (20), appendix B",
		says:    "Responses come in the order of the Reads, but the responder may read the memory for them in any order.",
		threads: [][]op{{write(nearA, x, 1)}, {read(nearB, x).named("r1"), read(nearB, x).named("r2")}},
		outcomes: []outcome{
			{when: "r1=1 r2=0", is: allowed, never: everywhere, why: "the library reads memory in the order of the Reads"},
			{when: "r1=0 r2=1", is: allowed, seen: everywhere},
			{when: "r1=1 r2=1", is: required},
			{is: allowed, seen: everywhere},
		},
	},
	{
		name: "Write, Read | Write, Read from the other end",
		rule: "RFC 5040 5.5 (2), (12)",
		says: "There is no order between the two directions of a stream; each has its own.",
		threads: [][]op{
			{write(nearA, x, 1), read(nearA, x).named("r1"), send(nearA, 1).named("m1")},
			{write(farA, x, 2), read(farA, x).named("r2"), send(farA, 2).named("m2")},
		},
		outcomes: []outcome{{when: "r1=1 m1=1 r2=2 m2=2", is: required}, {is: forbidden}},
	},
	{
		name: "Write x, Read of nothing, fenced Write y | Read y, fenced Read x",
		rule: "RFC 5040 5.5 (12), appendix B note (1)",
		says: "With a Read and a fence between the two Writes, the second is a flag for the first. The reader must fence, too.",
		threads: [][]op{
			{write(nearA, x, 1), readNothing(nearA), write(nearA, y, 1).fenced()},
			{read(nearB, y).named("y"), read(nearB, x).fenced().named("x")},
		},
		outcomes: []outcome{
			{when: "y=1 x=1", is: required},
			{when: "y=0", is: allowed, seen: everywhere},
			{when: "y=t x=1", is: allowed, why: shortTime},
			{is: forbidden},
		},
	},
	{
		name: "Write x, Read y | Write y, Read x",
		rule: "RFC 5040 5.5 (12), (17)",
		says: "Of two QPs that each write and then read what the other writes, at least one sees the other's Write.",
		threads: [][]op{
			{write(nearA, x, 1), read(nearA, y).named("y")}, {write(nearB, y, 1), read(nearB, x).named("x")},
		},
		outcomes: []outcome{{when: "y=0 x=0", is: forbidden}, {when: "y=1 x=1", is: required}, {is: allowed, seen: everywhere}},
	},
	{
		name: "Read x, Write y | Read y, Write x",
		rule: "RFC 5040 5.5 (12)",
		says: "Without a fence both Reads may return what is written after the other Read.",
		threads: [][]op{
			{read(nearA, x).named("x"), write(nearA, y, 1)}, {read(nearB, y).named("y"), write(nearB, x, 1)},
		},
		outcomes: []outcome{
			{when: "x=1 y=1", is: allowed, why: "both Responses must be late at once"},
			{is: allowed, seen: everywhere},
		},
	},
	{
		name: "Read x, fenced Write y | Read y, fenced Write x",
		rule: "RFC 5040 5.5 (12)",
		says: "With fences at most one of the Reads returns what is written after the other Read.",
		threads: [][]op{
			{read(nearA, x).named("x"), write(nearA, y, 1).fenced()}, {read(nearB, y).named("y"), write(nearB, x, 1).fenced()},
		},
		outcomes: []outcome{{when: "x=1 y=1", is: forbidden}, {when: "x=0 y=0", is: required}, {is: allowed, seen: everywhere}},
	},
}

// shortTime is why an outcome is rare.
const shortTime = "the time between two segments of one Write is short"
