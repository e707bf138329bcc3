package main

// readPrograms test what an RDMA Read returns, and what a fence changes.
var readPrograms = []program{
	{
		name:     "Write, Read",
		rule:     "RFC 5040 5.5 (11), (12), (17)",
		says:     "A Read returns what was written before it on the same QP. When it completes, all of its data are in the sink.",
		threads:  [][]op{{write(nearA, x, 1), read(nearA, x).named("r")}},
		outcomes: []outcome{{when: "r=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Send, Read of its receive",
		rule:     "RFC 5040 5.5 (12), (17), appendix B",
		says:     "The Response to a Read is made after all earlier Sends were delivered.",
		threads:  [][]op{{send(nearA, 1).to(x).named("m"), read(nearA, x).named("r")}},
		outcomes: []outcome{{when: "m=1 r=1", is: required}, {is: forbidden}},
	},
	{
		name:    "Read, Write",
		rule:    "RFC 5040 5.5 (12)",
		says:    "A Read may return what a later Write of the same QP has written. Set ReadFence on the Write.",
		threads: [][]op{{read(nearA, x).named("r"), write(nearA, x, 1)}},
		outcomes: []outcome{
			{when: "r=0", is: required},
			{when: "r=1", is: allowed, seen: everywhere},
			{when: "r=t", is: allowed, seen: everywhere},
			{is: forbidden},
		},
	},
	{
		name:     "Read, fenced Write",
		rule:     "RFC 5040 5.5 (12)",
		says:     "With ReadFence the Write starts when all earlier Reads and atomic operations have been answered.",
		threads:  [][]op{{read(nearA, x).named("r"), write(nearA, x, 1).fenced()}},
		outcomes: []outcome{{when: "r=0", is: required}, {is: forbidden}},
	},
	{
		name:    "Read, Send",
		rule:    "RFC 5040 5.5 (12), (18)",
		says:    "A Send may be delivered before an earlier Read is answered. The Read then returns what the Send has brought.",
		threads: [][]op{{read(nearA, x).named("r"), send(nearA, 1).to(x).named("m")}},
		outcomes: []outcome{
			{when: "r=0 m=1", is: required},
			{when: "r=1 m=1", is: allowed, seen: everywhere},
			{when: "r=t m=1", is: allowed, seen: everywhere},
			{is: forbidden},
		},
	},
	{
		name:     "Read, fenced Send",
		rule:     "RFC 5040 5.5 (12)",
		says:     "ReadFence has the same effect on a Send.",
		threads:  [][]op{{read(nearA, x).named("r"), send(nearA, 1).to(x).fenced().named("m")}},
		outcomes: []outcome{{when: "r=0 m=1", is: required}, {is: forbidden}},
	},
	{
		name:     "Write, Read, Local Invalidate of its sink",
		rule:     "RFC 5040 5.5 (11); draft-hilland-rddp-verbs 8.2.2.1",
		says:     "A Local Invalidate with LocalFence takes effect after the Read is complete.",
		threads:  [][]op{{write(nearA, x, 1), read(nearA, x).to(s).named("r"), localInvalidate(nearA).finds(isValid("valid", s))}},
		outcomes: []outcome{{when: "r=1 valid=0", is: required}, {is: forbidden}},
	},
	{
		name:     "Write, Read with Local Invalidate",
		rule:     "RFC 5040 5.5 (11)",
		says:     "When a Read with Local Invalidate completes, all octets are in the sink, and its STag is invalid.",
		threads:  [][]op{{write(nearA, x, 1), readInvalidate(nearA, x).named("r").finds(isValid("valid", s))}},
		outcomes: []outcome{{when: "r=1 valid=0", is: required}, {is: forbidden}},
	},
}
