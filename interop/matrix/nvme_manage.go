package matrix

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// nvmeManageCases are B10, B11, B13 and B15: what an administrator changes, what the target refuses, and what fails behind it.
func nvmeManageCases() []Case {
	c := func(name string, core bool, kernel ...string) Case {
		return Case{Name: "nvme/" + name, Role: Responder, Core: core, NoCapture: true, Limit: 5 * time.Minute, Kernel: kernel}
	}
	var cases []Case
	cases = append(cases, crcBoth(c("B10/namespaces", true), (*T).namespacesChange)...)
	cases = append(cases, crcBoth(c("B11/multipath", false, recovering...), (*T).multipath)...)
	cases = append(cases, crcBoth(c("B13/refusals", true, recovering...), (*T).refusals)...)
	failing := append([]string{`error, dev nvme`, `Buffer I/O error`, `lost (sync page|async page) write`, `device-mapper`}, recovering...)
	cases = append(cases, crcBoth(c("B15/eio", false, failing...), (*T).mediumFails)...)
	cases = append(cases, crcBoth(c("B15/full", false, failing...), (*T).mediumFull)...)
	return append(cases, crcBoth(c("B15/slow", false, failing...), (*T).mediumSlow)...)
}

// namespacesChange adds, grows and removes namespaces while Linux is connected.
func (t *T) namespacesChange(crc bool) {
	target := t.serveNVMe(crc, "-backing", "mem:64MiB", "-backing", "file:"+t.file("disk")+",size=16MiB")
	t.connectLinux(OurIP, "-i", "2")
	sees := func(want ...string) {
		var have []string
		require.True(t, t.within(20*time.Second, func() bool {
			have = nil
			for _, d := range disks() {
				have = append(have, sysfs(d, "size"))
			}
			slices.Sort(have) // Linux scans several namespaces at a time, and names them in any order
			return strings.Join(have, " ") == strings.Join(want, " ")
		}), "sectors of the disks: have %q, want %q", have, want)
	}
	sees("131072", "32768")
	target.control("add mem:32MiB")
	sees("131072", "32768", "65536")
	target.control("resize 2 32MiB")
	sees("131072", "65536", "65536")
	target.control("remove 1")
	sees("65536", "65536")
	require.Equal(t, 2, strings.Count(t.tool("lsblk", "-dno", "NAME"), "nvme"), "lsblk")
	require.Len(t, controllers(), 1, "the controller is the one that was connected")
	t.disconnectLinux()
}

// multipath connects Linux to two ports of the target, and then removes one.
func (t *T) multipath(crc bool) {
	t.serveNVMe(crc, "-listen", OurIP+":"+nvmePort, "-listen", OurSecondIP+":"+nvmePort, "-backing", "file:"+t.file("disk")+",size=64MiB")
	options := append([]string{"-i", "2", "-k", "5"}, "-c", "1", "-l", "60")
	t.connectLinux(OurIP, options...)
	t.connectLinux(OurSecondIP, options...)
	disk := t.disk()
	require.Len(t, controllers(), 2)
	p := t.busy(disk, 12)
	time.Sleep(3 * time.Second)
	address := func(verb string) {
		t.tool("ip", "-n", ourSpace, "addr", verb, OurSecondIP+"/24", "dev", "v1")
	}
	address("del")
	time.Sleep(5 * time.Second)
	require.True(t, p.running(), "I/O continues on the other path")
	address("add")
	p.succeed()
	t.live()
	t.disconnectLinux()
}

// refusals makes Linux attempt connections that the target must refuse.
func (t *T) refusals(crc bool) {
	target := t.serveNVMe(crc, "-backing", "mem:16MiB", "-allow", HostNQN, "-max-queues", "1")
	refused := func(why string, args ...string) {
		out, err := exec.Command("nvme", append([]string{"connect", "-t", "rdma", "-a", OurIP, "-s", nvmePort}, args...)...).CombinedOutput()
		require.Error(t, err, "nvme connect %v: %s", args, out)
		require.Contains(t, t.kernelSays(), why, "nvme connect %v: %s", args, out)
	}
	refused("Connect Invalid Data Parameter, subsysnqn", "-n", "nqn.2026-11.example:unknown", "-q", HostNQN, "-I", nvmeHostID)
	const other = "11111111-2222-4333-8444-555555555502"
	refused("Connect for subsystem "+nvmeSubsystem+" is not allowed, hostnqn: nqn.2014-08.org.nvmexpress:uuid:"+other,
		"-n", nvmeSubsystem, "-q", "nqn.2014-08.org.nvmexpress:uuid:"+other, "-I", other)
	t.joinLinux("2")
	count, err := os.ReadFile(filepath.Join("/sys/class/nvme", controllers()[0], "queue_count"))
	require.NoError(t, err)
	require.Equal(t, "2", strings.TrimSpace(string(count)), "the admin queue and the one I/O queue that the target grants")
	t.disconnectLinux()
	target.stop()
}

// deviceMapper makes a device on a disk in memory, with a table for dmsetup.
func (t *T) deviceMapper(table string) string {
	t.tool("modprobe", "brd", "rd_nr=1", "rd_size=32768")
	t.tool("dmsetup", "create", "lab", "--table", table)
	t.Cleanup(func() {
		if out, err := exec.Command("dmsetup", "remove", "--force", "--retry", "lab").CombinedOutput(); err != nil {
			t.Errorf("dmsetup remove: %v: %s", err, out)
		}
	})
	t.tool("dmsetup", "mknodes")
	return "/dev/mapper/lab"
}

// mediumFails uses a disk behind the target of which a part fails.
func (t *T) mediumFails(crc bool) {
	device := t.deviceMapper("0 32768 linear /dev/ram0 0\n32768 8192 error\n40960 24576 linear /dev/ram0 40960")
	t.serveNVMe(crc, "-backing", "block:"+device+",direct")
	disk := t.joinLinux("2")
	// This is how Linux reports an error of the medium.
	t.fails("No data available", "dd", "if=/dev/zero", "of="+disk, "bs=64k", "seek=256", "count=1", "oflag=direct")
	t.fails("No data available", "dd", "if="+disk, "of=/dev/null", "bs=64k", "skip=256", "count=1", "iflag=direct")
	require.NoError(t, writeRandom(disk, 8, 8<<20), "the rest of the disk is good")
	dropCaches(t)
	require.NoError(t, checkRandom(disk, 8, 8<<20))
	require.Contains(t, t.kernelSays(), "error, dev nvme")
	t.disconnectLinux()
}

// fails runs a program, which must fail and say why.
func (t *T) fails(why, name string, args ...string) {
	out, err := t.command(name, args...).CombinedOutput()
	require.Error(t, err, "%s %v: %s", name, args, out)
	require.Contains(t, string(out), why, "%s %v", name, args)
}

// mediumFull fills the memory behind the target.
func (t *T) mediumFull(crc bool) {
	t.serveNVMe(crc, "-backing", "mem:64MiB,cap=8MiB")
	disk := t.joinLinux("2")
	t.fails("No space left on device", "dd", "if=/dev/urandom", "of="+disk, "bs=1M", "count=16", "oflag=direct")
	require.NoError(t, writeRandom(disk, 9, 4<<20), "what has room is written")
	dropCaches(t)
	require.NoError(t, checkRandom(disk, 9, 4<<20))
	t.disconnectLinux()
}

// mediumSlow stops the disk behind the target for longer than the host waits for a response.
func (t *T) mediumSlow(crc bool) {
	device := t.deviceMapper("0 65536 linear /dev/ram0 0")
	t.serveNVMe(crc, "-backing", "block:"+device+",direct")
	disk := t.joinLinux("2", reconnect...)
	require.NoError(t, writeRandom(disk, 10, 1<<20))
	t.tool("dmsetup", "suspend", "lab")
	write := t.start(t.command("dd", "if=/dev/zero", "of="+disk, "bs=4k", "seek=1024", "count=1", "oflag=direct"), "dd")
	time.Sleep(45 * time.Second)
	t.tool("dmsetup", "resume", "lab")
	write.succeed()
	t.live()
	dropCaches(t)
	require.NoError(t, checkRandom(disk, 10, 1<<20))
	require.Regexp(t, "timeout|timed out", t.kernelSays())
	t.disconnectLinux()
}
