package matrix

import (
	"strings"

	"github.com/stretchr/testify/require"
)

// nvmeSetUpCases are B1: what an administrator's tools show and do.
func nvmeSetUpCases() []Case {
	c := Case{Name: "nvme/B1/tools", Role: Responder, Core: true}
	return crcBoth(c, (*T).nvmeTools)
}

// nvmeTools runs the commands of nvme-cli.
func (t *T) nvmeTools(crc bool) {
	target := t.serveNVMe(crc, "-backing", "mem:64MiB")
	found := t.cli("discover", "-t", "rdma", "-a", OurIP, "-s", nvmePort, "-q", HostNQN, "-I", nvmeHostID)
	for _, want := range []string{nvmeSubsystem, "trtype:  rdma", "traddr:  " + OurIP, "trsvcid: " + nvmePort} {
		require.Contains(t, found, want, "nvme discover")
	}
	for _, queues := range []string{"1", "2", fourQueues} {
		disk := t.joinLinux(queues)
		require.Equal(t, "131072", sysfs(disk, "size"), "sectors of the disk")
		if queues == "2" {
			t.nvmeInspect(disk, controllers()[0])
		}
		t.disconnectLinux()
	}
	request, reply := t.startup()
	require.Equal(t, crc, (request[0]|reply[0])&flagCRC != 0, "CRC in use: Request %x, Reply %x", request, reply)
	target.stop()
}

// nvmeInspect makes nvme-cli show everything about a connected controller.
func (t *T) nvmeInspect(disk, controller string) {
	ctrl := "/dev/" + controller
	contains := func(what string, want ...string) {
		said := t.cli(strings.Fields(what)...)
		for _, w := range want {
			require.Contains(t, said, w, "nvme %s", what)
		}
	}
	contains("list", disk)
	contains("list -v", disk, nvmeSubsystem, OurIP)
	contains("id-ctrl "+ctrl, nvmeSubsystem, "mdts      : 8", "cntrltype : 1")
	contains("id-ns "+disk, "nsze    : 0x4000")
	contains("ns-descs "+disk, "uuid")
	contains("list-ns "+ctrl, "[   0]:0x1")
	contains("smart-log "+ctrl, "critical_warning")
	contains("error-log "+ctrl, "Error Log Entries")
	contains("fw-log "+ctrl, "Firmware Log")
	contains("effects-log "+ctrl+" -c 0 -H", "Get Log Page", "Write Zeroes")
	contains("changed-ns-list-log " + ctrl)
	contains("get-feature "+ctrl+" -f 7", "00010001")
	contains("get-feature "+ctrl+" -f 11", "get-feature:0x0b")
	// show-regs of nvme-cli 2.3 shows memory that it has not written.
	contains("get-property "+ctrl+" -o 0x1c", "value: 1")
	contains("get-property "+ctrl+" -o 0x8 -H", "version")
}
