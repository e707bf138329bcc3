package main

import "slices"

// mountsSystem is the guest's system for the cases of mounts: with Linux's client of 9P over RDMA.
var mountsSystem = guestSystem{
	name:      matrixSystem.name,
	initramfs: "initramfs-mounts",
	packages:  matrixSystem.packages,
	programs:  matrixSystem.programs,
	modules:   append(slices.Clone(matrixSystem.modules), "9pnet_rdma"),
	ours:      map[string]string{"ninep": "examples/ninep"},
}
