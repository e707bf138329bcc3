package main

import "slices"

// streamsSystem is the guest's system for the stream socket cases.
var streamsSystem = guestSystem{
	name:      "userland-streams",
	initramfs: "initramfs-streams",
	packages:  append(slices.Clone(matrixSystem.packages), "iperf3", "libiperf0"),
	programs: append(slices.Clone(matrixSystem.programs),
		"usr/bin/rstream", "usr/bin/riostream", "usr/bin/rcopy", "usr/bin/iperf3", "usr/bin/echoserver", "usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"),
	modules: matrixSystem.modules,
	ours: map[string]string{
		"rcopy":  "examples/rcopy",
		"bridge": "examples/bridge",
	},
}
