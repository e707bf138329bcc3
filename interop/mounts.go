package main

import "slices"

// mountsSystem is the guest's system for the cases of mounts: with Linux's clients of 9P and NFS over RDMA.
var mountsSystem = guestSystem{
	name:      matrixSystem.name,
	initramfs: "initramfs-mounts",
	packages:  matrixSystem.packages,
	programs:  matrixSystem.programs,
	modules:   append(slices.Clone(matrixSystem.modules), "9pnet_rdma", "nfsv3", "rpcrdma"),
	ours:      map[string]string{"ninep": "examples/ninep", "nfs": "examples/nfs"},
}
