package main

import "slices"

// mountsSystem is the guest's system for the mount cases: with Linux's clients of 9P and NFS over RDMA, and its NFS server.
var mountsSystem = guestSystem{
	name:      "userland-mounts",
	initramfs: "initramfs-mounts",
	packages:  append(slices.Clone(matrixSystem.packages), "fio"),
	programs:  append(slices.Clone(matrixSystem.programs), "usr/bin/fio"),
	modules:   append(slices.Clone(matrixSystem.modules), "9pnet_rdma", "9pnet_fd", "nfsv3", "rpcrdma", "nfsd"),
	ours:      map[string]string{"ninep": "examples/ninep", "nfs": "examples/nfs"},
}
