package matrix

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// fio is a run of fio on a disk: it verifies what it has written.
type fio struct {
	rw   string
	bs   string // of a request, or a range
	jobs int
	size string // of each job
	more []string
}

// args returns the arguments of fio: its jobs send asynchronous requests.
func (f fio) args(disk string) []string {
	sizes := f.bs
	if !strings.Contains(sizes, "-") {
		sizes += "-" + sizes
	}
	return append([]string{
		"--name=lab", "--filename=" + disk, "--rw=" + f.rw, "--bsrange=" + sizes, fmt.Sprintf("--numjobs=%d", f.jobs),
		"--size=" + f.size, "--offset_increment=" + f.size, "--ioengine=libaio", "--iodepth=32", "--direct=1", "--thread",
		"--verify=crc32c", "--do_verify=1", "--verify_fatal=1", "--group_reporting", "--randrepeat=1", "--refill_buffers=0",
	}, f.more...)
}

// nvmeIOCases are B3 to B5, B11 and B12: data of many kinds.
func nvmeIOCases() []Case {
	c := func(name string, core bool) Case {
		return Case{Name: "nvme/" + name, Role: Responder, Core: core, NoCapture: true, Limit: 5 * time.Minute}
	}
	var cases []Case
	cases = append(cases, crcBoth(c("B3/long-requests", false), (*T).longRequests)...)
	cases = append(cases, crcBoth(c("B4/fio-random", true), func(t *T, crc bool) {
		t.fioOn(crc, fio{rw: "randrw", bs: "4k", jobs: 4, size: "4m", more: []string{"--fsync=64"}})
	})...)
	cases = append(cases, crcBoth(c("B4/fio-sequential", false), func(t *T, crc bool) {
		t.fioOn(crc, fio{rw: "write", bs: "1m", jobs: 4, size: "16m"})
	})...)
	cases = append(cases, crcBoth(c("B4/fio-trim", false), (*T).fioTrim)...)
	cases = append(cases, crcBoth(c("B5/solicited", false), (*T).solicited)...)
	cases = append(cases, crcBoth(c("B11/two-hosts", true), (*T).twoHosts)...)
	cases = append(cases, crcBoth(c("B12/discard", true), (*T).discard)...)
	return cases
}

// fioOn runs fio on a file of our target, with four I/O queues.
func (t *T) fioOn(crc bool, f fio) {
	t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=256MiB,bs=512")
	t.tool("fio", f.args(t.joinLinux(fourQueues))...)
	t.disconnectLinux()
}

// fioTrim runs one fio that trims and writes at random, and another one that verifies what it writes elsewhere on the disk.
func (t *T) fioTrim(crc bool) {
	t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=256MiB,bs=512")
	disk := t.joinLinux(fourQueues)
	trims := t.start(t.command("fio", "--name=trim", "--filename="+disk, "--rw=randtrimwrite", "--bs=8k", "--offset=128m", "--size=8m",
		"--ioengine=libaio", "--iodepth=8", "--direct=1", "--thread"), "fio")
	t.tool("fio", fio{rw: "randwrite", bs: "4k", jobs: 4, size: "4m", more: []string{"--fdatasync=32"}}.args(disk)...)
	trims.succeed()
	t.disconnectLinux()
}

// file returns the name of a file in the memory of the guest, which is removed when the case ends.
func (t *T) file(name string) string {
	f := "/tmp/nvme-" + name
	_ = os.Remove(f) // a previous case may have left it
	t.Cleanup(func() { _ = os.Remove(f) })
	return f
}

// longRequests sends requests of exactly 1020 KiB, and of many lengths.
func (t *T) longRequests(crc bool) {
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=128MiB,bs=512")
	disk := t.joinLinux("2")
	before := target.stats()
	t.tool("fio", fio{rw: "write", bs: "1020k", jobs: 1, size: "16320k"}.args(disk)...)
	t.tool("fio", fio{rw: "randwrite", bs: "512-1020k", jobs: 2, size: "16m"}.args(disk)...)
	t.tool("dd", "if="+disk, "of=/dev/null", "bs=1M", "count=32", "iflag=direct")
	after := target.stats()
	require.NotEqual(t, before, after, "counters of the target")
	t.disconnectLinux()
}

// solicited makes Linux and our host write concurrently to a target that requests no more than a window of octets.
func (t *T) solicited(crc bool) {
	const window = 1 << 20
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=128MiB,bs=512", "-solicit", "1MiB")
	disk := t.joinLinux(fourQueues)
	ours := t.nvmeOurs(append(t.ourHost("verify", crc), "-nsid", "1", "-offset", "64MiB", "-size", "8MiB", "-jobs", "2", "-depth", "4", "-time", "5s")...)
	t.tool("fio", fio{rw: "write", bs: "1020k", jobs: 2, size: "8160k"}.args(disk)...)
	t.tool("fio", fio{rw: "randwrite", bs: "4k", jobs: 4, size: "2m"}.args(disk)...)
	ours.succeed()
	s := target.stats()
	most, ok := s["MostSolicited"].(float64)
	require.True(t, ok && most > 0 && most <= window, "octets asked for and under way: %v", s)
	require.Zero(t, s["Stalled"], "no queue has stalled")
	t.disconnectLinux()
}

// twoHosts reads with our host what Linux writes, and the reverse, on one namespace.
func (t *T) twoHosts(crc bool) {
	t.serveNVMe(crc, "-backing", "mem:64MiB")
	disk := t.joinLinux("2")
	const octets = 8 << 20
	require.NoError(t, writeRandom(disk, 11, octets), "Linux writes")
	read := t.file("read")
	t.nvmeOursSays(append(t.ourHost("read", crc), "-offset", "0", "-length", fmt.Sprint(octets), "-file", read)...)
	require.NoError(t, checkRandom(read, 11, octets), "our host reads what Linux has written")
	written := t.file("written")
	require.NoError(t, writeRandom(written, 12, octets))
	t.nvmeOursSays(append(t.ourHost("write", crc), "-offset", fmt.Sprint(octets), "-length", fmt.Sprint(octets), "-file", written)...)
	seen := t.file("seen")
	t.tool("dd", "if="+disk, "of="+seen, "bs=1M", "skip=8", "count=8", "iflag=direct")
	require.NoError(t, checkRandom(seen, 12, octets), "Linux reads what our host has written")
	t.disconnectLinux()
}

// ourHost returns the arguments for a command of our host at our target.
func (t *T) ourHost(command string, crc bool) []string {
	args := []string{command, OurIP + ":" + nvmePort, "-nqn", nvmeSubsystem}
	if !crc {
		args = append(args, "-crc=false")
	}
	if command == "read" || command == "write" {
		args = append(args, "-nsid", "1")
	}
	return args
}

// discard makes Linux discard the disk: it then reads zeros, and the file of the target has shrunk.
func (t *T) discard(crc bool) {
	file := t.file("disk")
	t.serveNVMe(crc, "-backing", "file:"+file+",size=64MiB")
	disk := t.joinLinux("2")
	require.NotRegexp(t, `\s0B\s*$`, strings.TrimSpace(t.tool("lsblk", "-dnD", "-o", "DISC-MAX", disk)), "lsblk -D")
	fill := func() {
		require.NoError(t, writeRandom(disk, 3, 16<<20))
		require.Greater(t, t.allocated(file), 15<<20)
	}
	zeros := func(what string) {
		t.tool("blockdev", "--flushbufs", disk)
		require.NoError(t, checkOctets(disk, zeroOctets{}, 16<<20), "zeros after %s", what)
	}
	fill()
	t.tool("blkdiscard", disk)
	zeros("blkdiscard")
	require.Less(t, t.allocated(file), 1<<20, "the file has shrunk")
	fill()
	t.tool("blkdiscard", "-z", disk)
	zeros("blkdiscard -z")
	t.tool("mkfs.ext4", "-q", "-F", disk)
	t.mount("ext4", disk)
	require.NoError(t, writeRandom(mountPoint+"/file", 4, 16<<20))
	full := t.allocated(file)
	require.NoError(t, os.Remove(mountPoint+"/file"))
	t.tool("sync")
	t.tool("fstrim", mountPoint)
	require.Less(t, t.allocated(file), full-(12<<20), "fstrim has given back what the file had")
	t.unmount()
	t.disconnectLinux()
}

// allocated returns how many octets a file occupies.
func (t *T) allocated(file string) int {
	var kib int
	_, err := fmt.Sscan(t.tool("du", "-k", file), &kib)
	require.NoError(t, err)
	return kib << 10
}
