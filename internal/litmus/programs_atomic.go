package main

// atomicPrograms test atomic operations.
var atomicPrograms = []program{
	{
		name:     "Fetch and Add, Fetch and Add",
		rule:     "RFC 7306 5.4 (8), 7",
		says:     "Atomic operations of one QP are performed in the order in which they were posted.",
		threads:  [][]op{{fetchAdd(nearA, c, 1).named("r1"), fetchAdd(nearA, c, 1).named("r2")}},
		final:    []sight{sees("c", c)},
		outcomes: []outcome{{when: "r1=0 r2=1 c=2", is: required}, {is: forbidden}},
	},
	{
		name:    "Fetch and Add | Fetch and Add",
		rule:    "RFC 7306 5.4 (2)",
		says:    "Atomic operations of all QPs of one RNIC are atomic: none is lost, and no two return the same value.",
		threads: [][]op{{fetchAdd(nearA, c, 1).named("r1")}, {fetchAdd(nearB, c, 1).named("r2")}},
		final:   []sight{sees("c", c)},
		outcomes: []outcome{
			{when: "r1=0 r2=1 c=2", is: required}, {when: "r1=1 r2=0 c=2", is: required}, {is: forbidden},
		},
	},
	{
		name:    "Compare and Swap | Compare and Swap",
		rule:    "RFC 7306 5.1.2, 5.4 (2)",
		says:    "If two QPs try to take a lock by Compare and Swap, exactly one gets it.",
		threads: [][]op{{compareSwap(nearA, c, 1).named("r1")}, {compareSwap(nearB, c, 2).named("r2")}},
		final:   []sight{sees("c", c)},
		outcomes: []outcome{
			{when: "r1=0 r2=1 c=1", is: required}, {when: "r1=2 r2=0 c=2", is: required}, {is: forbidden},
		},
	},
	{
		name:     "Write, Fetch and Add",
		rule:     "RFC 7306 5.4 (3), (5), 7",
		says:     "An atomic operation is performed after earlier Writes of the same QP are in place.",
		threads:  [][]op{{write(nearA, c, 1), fetchAdd(nearA, c, 1).named("r")}},
		final:    []sight{sees("c", c)},
		outcomes: []outcome{{when: "r=1 c=2", is: required}, {is: forbidden}},
	},
	{
		name:     "Send, Fetch and Add in its receive",
		rule:     "RFC 7306 5.4 (5), 7",
		says:     "An atomic operation is performed after earlier Sends of the same QP were delivered.",
		threads:  [][]op{{send(nearA, 1).to(x), fetchAdd(nearA, x, 1).named("r")}},
		outcomes: []outcome{{when: "r=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Fetch and Add, Read",
		rule:     "RFC 7306 7",
		says:     "A Read returns what earlier atomic operations have stored.",
		threads:  [][]op{{fetchAdd(nearA, c, 1).named("r1"), read(nearA, c).named("r2")}},
		outcomes: []outcome{{when: "r1=0 r2=1", is: required}, {is: forbidden}},
	},
	{
		name:    "Read, Fetch and Add",
		rule:    "RFC 7306 7",
		says:    "A Read may return what a later atomic operation has stored. Set ReadFence on the atomic operation.",
		threads: [][]op{{read(nearA, c).named("r1"), fetchAdd(nearA, c, 1).named("r2")}},
		outcomes: []outcome{
			{when: "r1=0 r2=0", is: required},
			{when: "r1=1 r2=0", is: allowed, seen: reordering, why: "over TCP the octets of a short Response are copied when it is made"},
			{is: forbidden},
		},
	},
	{
		name:     "Read, fenced Fetch and Add",
		rule:     "RFC 7306 7",
		says:     "With ReadFence the Read returns the value from before the atomic operation.",
		threads:  [][]op{{read(nearA, c).named("r1"), fetchAdd(nearA, c, 1).fenced().named("r2")}},
		outcomes: []outcome{{when: "r1=0 r2=0", is: required}, {is: forbidden}},
	},
	{
		name:    "Fetch and Add, Write",
		rule:    "RFC 7306 5.4 (4), 7",
		says:    "A later Write may be placed before an atomic operation is performed.",
		threads: [][]op{{fetchAdd(nearA, c, 1).named("r"), write(nearA, c, 2)}},
		outcomes: []outcome{
			{when: "r=0", is: required}, {when: "r=2", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
	{
		name:     "Fetch and Add, fenced Write",
		rule:     "RFC 7306 5.4 (4), 7",
		says:     "ReadFence makes a Write wait for atomic operations, too.",
		threads:  [][]op{{fetchAdd(nearA, c, 1).named("r"), write(nearA, c, 2).fenced()}},
		final:    []sight{sees("c", c)},
		outcomes: []outcome{{when: "r=0 c=2", is: required}, {is: forbidden}},
	},
	{
		name:    "Fetch and Add, Send",
		rule:    "RFC 7306 5.4 (6), 7",
		says:    "A Send may complete at the peer before an earlier atomic operation is performed.",
		threads: [][]op{{fetchAdd(nearA, c, 1).named("r"), send(nearA, 1).finds(sees("c", c))}},
		outcomes: []outcome{
			{when: "r=0 c=1", is: required}, {when: "r=0 c=0", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
	{
		name:     "Fetch and Add, fenced Send",
		rule:     "RFC 7306 5.4 (6), 7",
		says:     "With ReadFence the receiver of the Send finds what the atomic operation has stored.",
		threads:  [][]op{{fetchAdd(nearA, c, 1).named("r"), send(nearA, 1).fenced().finds(sees("c", c))}},
		outcomes: []outcome{{when: "r=0 c=1", is: required}, {is: forbidden}},
	},
	{
		name:    "Fetch and Add, Immediate",
		rule:    "RFC 7306 7",
		says:    "Immediate Data may also complete before an earlier atomic operation is performed.",
		threads: [][]op{{fetchAdd(nearA, c, 1).named("r"), immediate(nearA, 1).named("m").finds(sees("c", c))}},
		outcomes: []outcome{
			{when: "r=0 m=1 c=1", is: required}, {when: "r=0 m=1 c=0", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
	{
		name:     "Fetch and Add, fenced Immediate",
		rule:     "RFC 7306 7",
		says:     "ReadFence holds Immediate Data back, too.",
		threads:  [][]op{{fetchAdd(nearA, c, 1).named("r"), immediate(nearA, 1).fenced().named("m").finds(sees("c", c))}},
		outcomes: []outcome{{when: "r=0 m=1 c=1", is: required}, {is: forbidden}},
	},
	{
		name: "Write, Fetch and Add | Read, fenced Read",
		rule: "RFC 7306 5.4 (5), 7",
		says: "An atomic operation is a flag for earlier Writes: a QP that sees its effect, and then reads, sees those Writes.",
		threads: [][]op{
			{write(nearA, x, 1), fetchAdd(nearA, c, 1)}, {read(nearB, c).named("c"), read(nearB, x).fenced().named("x")},
		},
		outcomes: []outcome{
			{when: "c=1 x=1", is: required}, {when: "c=0", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
}
