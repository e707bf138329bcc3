package main

import (
	"slices"
)

// nvmeSystem is the guest's system for the NVMe cases: with Linux's host and target of NVMe over RDMA,
// and programs that make and check file systems.
var nvmeSystem = guestSystem{
	name:      "userland-nvme",
	initramfs: "initramfs-nvme",
	packages: append(slices.Clone(matrixSystem.packages),
		"nvme-cli", "fio", "e2fsprogs", "xfsprogs", "util-linux", "coreutils", "dmsetup"),
	programs: append(slices.Clone(matrixSystem.programs),
		"usr/sbin/nvme", "usr/bin/fio", "sbin/mkfs.ext4", "sbin/e2fsck", "sbin/mkfs.xfs", "sbin/xfs_repair",
		"bin/lsblk", "sbin/blkdiscard", "sbin/blockdev", "sbin/fstrim", "bin/dd", "sbin/dmsetup"),
	modules: append(slices.Clone(matrixSystem.modules),
		"nvme_rdma", "nvmet_rdma", "nvme_tcp", "nvmet_tcp", "null_blk", "configfs", "ext4", "xfs", "dm_mod", "brd"),
	ours: map[string]string{"nvmego": "examples/nvme/cmd"},
}
