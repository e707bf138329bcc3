package main

const commitRule = "draft-talpey-rdma-commit 2.1"

// commitPrograms test RDMA Commit. A "durable" value is one that a power failure at that time
// would leave.
var commitPrograms = []program{
	{
		name:    "Write, Send",
		rule:    commitRule,
		says:    "A message means that Writes are in place, not that they are durable. Use Commit, or DurableOnReceive.",
		threads: [][]op{{write(nearA, p, 1), send(nearA, 1).named("m").finds(isDurable("durable", p))}},
		outcomes: []outcome{
			{when: "m=1 durable=0", is: required},
			{when: "m=1 durable=1", is: allowed, never: everywhere, why: "nothing calls Flush; the system may write a file at any time"},
			{is: forbidden},
		},
	},
	{
		name:     "Write, Commit",
		rule:     commitRule + ", 3.2.2",
		says:     "When a Commit completes, all earlier Writes to its regions are durable.",
		threads:  [][]op{{write(nearA, p, 1), commitOf(nearA, p).finds(isDurable("durable", p))}},
		outcomes: []outcome{{when: "durable=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Write, Fetch and Add, Commit",
		rule:     commitRule + "; RFC 7306 7",
		says:     "A Commit makes durable what earlier atomic operations have stored, too.",
		threads:  [][]op{{write(nearA, e, 1), fetchAdd(nearA, e, 1).named("r"), commitOf(nearA, e).finds(isDurable("durable", e))}},
		outcomes: []outcome{{when: "r=1 durable=2", is: required}, {is: forbidden}},
	},
	{
		name:     "Write, Commit, Read",
		rule:     commitRule + ", 3.2.3",
		says:     "Operations after a Commit complete after it.",
		threads:  [][]op{{write(nearA, p, 1), commitOf(nearA, p), read(nearA, p).named("r").finds(isDurable("durable", p))}},
		outcomes: []outcome{{when: "r=1 durable=1", is: required}, {is: forbidden}},
	},
	{
		name: "Write, Commit with a follow-on | Read",
		rule: "draft-talpey-rdma-commit 3.2.4",
		says: "The follow-on of a Commit is stored when its regions are durable: it is a flag for them.",
		threads: [][]op{
			{write(nearA, p, 1), commitOf(nearA, p).thenStores(1)}, {read(nearB, c).named("c").finds(isDurable("durable", p))},
		},
		outcomes: []outcome{
			{when: "c=1 durable=1", is: required}, {when: "c=0", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
	{
		name: "Write, Commit, Write of a flag | Read",
		rule: "draft-talpey-rdma-commit 3.2.3",
		says: "A Write after a Commit does not wait for it, and is no flag. Use a follow-on, an atomic operation or ReadFence.",
		threads: [][]op{
			{write(nearA, p, 1), commitOf(nearA, p), write(nearA, x, 1)}, {read(nearB, x).named("x").finds(isDurable("durable", p))},
		},
		outcomes: []outcome{
			{when: "x=1 durable=0", is: allowed, seen: everywhere}, {when: "x=1 durable=1", is: required}, {is: allowed, seen: everywhere},
		},
	},
	{
		name: "Write, Commit, fenced Write of a flag | Read",
		rule: "draft-talpey-rdma-commit 3.2.3; RFC 7306 5.4",
		says: "ReadFence makes a Write wait for Commits, too.",
		threads: [][]op{
			{write(nearA, p, 1), commitOf(nearA, p), write(nearA, x, 1).fenced()},
			{read(nearB, x).named("x").finds(isDurable("durable", p))},
		},
		outcomes: []outcome{
			{when: "x=1 durable=1", is: required},
			{when: "x=0", is: allowed, seen: everywhere},
			{when: "x=t durable=1", is: allowed, why: shortTime},
			{is: forbidden},
		},
	},
	{
		name: "Write, Commit, Fetch and Add | Read",
		rule: "draft-talpey-rdma-commit 3.2.3; RFC 7306 7",
		says: "An atomic operation is performed after earlier Commits were answered, even if they failed.",
		threads: [][]op{
			{write(nearA, p, 1), commitOf(nearA, p), fetchAdd(nearA, c, 1)},
			{read(nearB, c).named("c").finds(isDurable("durable", p))},
		},
		outcomes: []outcome{
			{when: "c=1 durable=1", is: required}, {when: "c=0", is: allowed, seen: everywhere}, {is: forbidden},
		},
	},
	{
		name:    "Write, Commit, Send",
		rule:    "draft-talpey-rdma-commit 3.2.3",
		says:    "A Send after a Commit may complete at the peer before the Commit is done.",
		threads: [][]op{{write(nearA, p, 1), commitOf(nearA, p), send(nearA, 1).named("m").finds(isDurable("durable", p))}},
		outcomes: []outcome{
			{when: "m=1 durable=0", is: allowed, seen: everywhere}, {when: "m=1 durable=1", is: required}, {is: forbidden},
		},
	},
	{
		name:     "Write, Commit, fenced Send",
		rule:     "draft-talpey-rdma-commit 3.2.3; RFC 7306 5.4",
		says:     "With ReadFence the receiver of the Send knows that the Commit is done.",
		threads:  [][]op{{write(nearA, p, 1), commitOf(nearA, p), send(nearA, 1).fenced().named("m").finds(isDurable("durable", p))}},
		outcomes: []outcome{{when: "m=1 durable=1", is: required}, {is: forbidden}},
	},
}
