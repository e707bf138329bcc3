package matrix

import (
	"slices"
	"time"
)

// nvmeCases is the table of NVMe over RDMA cases. The letters and numbers are those of the test plan: B, Linux's host with our
// target, the program "nvme serve"; C, our host with Linux's target. The role is ours.
var nvmeCases = slices.Concat(
	nvmeSetUpCases(), nvmeFileSystemCases(), nvmeIOCases(), nvmeRecoveryCases(), nvmeManageCases(), nvmetCases(), nvmeFigures(),
)

// The names of the two ends of an NVMe case.
const (
	nvmeSubsystem = "nqn.2026-11.example.iwarp:lab"
	HostNQN       = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555501"
	nvmeHostID    = "11111111-2222-4333-8444-555555555501"
	nvmePort      = "4420"
)

// crcBoth makes a case with the CRC of FPDUs, and one without.
func crcBoth(c Case, run func(t *T, crc bool)) []Case {
	on, off := c, c
	on.Name, on.Run = c.Name+"/crc-on", func(t *T) { run(t, true) }
	off.Name, off.Run = c.Name+"/crc-off", func(t *T) { run(t, false) }
	return []Case{watched(on), watched(off)}
}

// watched completes a case: its kernel log is checked, and its limit is long enough for an emulated machine.
func watched(c Case) Case {
	run := c.Run
	c.Run = func(t *T) {
		t.watchKernel()
		run(t)
	}
	c.Name += "/" + string(c.Role)
	if c.Limit == 0 {
		c.Limit = 3 * time.Minute
	}
	return c
}
