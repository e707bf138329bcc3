package matrix

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// What Linux's host logs when its connections are lost and it connects again.
var recovering = []string{
	`nvme nvme\d+: `, // every step of the recovery
	`nvme\d+c?\d*n\d+: I/O`,
	`no usable path - requeuing I/O`,
	`callbacks suppressed`,
}

// nvmeRecoveryCases are B6 to B9: the target goes and comes back, and so do its queues.
func nvmeRecoveryCases() []Case {
	c := func(name string) Case {
		return Case{Name: "nvme/" + name, Role: Responder, NoCapture: true, Limit: 5 * time.Minute, Kernel: recovering}
	}
	var cases []Case
	for _, r := range []struct {
		name string
		run  func(*T, bool)
	}{
		{"B6/restart", (*T).restart},
		{"B7/killed", (*T).killed},
		{"B8/reset-loop", (*T).resetLoop},
		{"B8/queues-ended", (*T).queuesEnded},
		{"B9/stopped", (*T).stopped},
	} {
		cases = append(cases, crcBoth(c(r.name), r.run)...)
	}
	return cases
}

// reconnect are the options for a host that connects again soon.
var reconnect = []string{"-c", "1", "-l", "60", "-k", "5"}

// busy runs fio on a disk for some time: it writes all over the disk, and verifies.
func (t *T) busy(disk string, seconds int) *process {
	f := fio{rw: "randwrite", bs: "4k", jobs: 2, size: "8m", more: []string{
		"--time_based", fmt.Sprintf("--runtime=%d", seconds), "--rate_iops=300", "--verify_backlog=256",
	}}
	return t.start(t.command("fio", f.args(disk)...), "fio")
}

// live waits until the controller is live again.
func (t *T) live() {
	require.True(t, t.within(60*time.Second, func() bool {
		for _, c := range controllers() {
			b, err := os.ReadFile("/sys/class/nvme/" + c + "/state")
			if err != nil || strings.TrimSpace(string(b)) != "live" {
				return false
			}
		}
		return len(controllers()) > 0
	}), "the controllers are live again: %q", controllers())
}

// restart stops the target gracefully, and starts it again, while Linux writes.
func (t *T) restart(crc bool) {
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=64MiB")
	disk := t.joinLinux("2", reconnect...)
	p := t.busy(disk, 12)
	for range 2 {
		time.Sleep(3 * time.Second)
		target.stop()
		time.Sleep(time.Second)
		target = target.again()
	}
	p.succeed()
	t.live()
	require.Equal(t, []string{disk}, disks(), "it is the same disk")
	t.disconnectLinux()
}

// killed kills the target in the middle of writes. Octets that were durable before must still be there.
func (t *T) killed(crc bool) {
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=64MiB")
	disk := t.joinLinux("2", reconnect...)
	const flushed = 4 << 20
	copied := t.file("flushed")
	require.NoError(t, writeRandom(copied, 5, flushed))
	t.tool("dd", "if="+copied, "of="+disk, "bs=1M", "seek=32", "oflag=direct", "conv=fsync")
	p := t.busy(disk, 12)
	for range 2 {
		time.Sleep(3 * time.Second)
		target.kill()
		target = target.again()
	}
	p.succeed()
	t.live()
	seen := t.file("seen")
	t.tool("dd", "if="+disk, "of="+seen, "bs=1M", "skip=32", "count=4", "iflag=direct")
	require.NoError(t, checkRandom(seen, 5, flushed), "what was flushed")
	require.NotContains(t, t.kernelSays(), "identifiers changed")
	t.disconnectLinux()
}

// resetLoop repeatedly resets the controller while Linux writes.
func (t *T) resetLoop(crc bool) {
	t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=64MiB")
	disk := t.joinLinux("2", reconnect...)
	p := t.busy(disk, 12)
	for p.running() {
		t.cli("reset", "/dev/"+controllers()[0])
		t.live()
		time.Sleep(500 * time.Millisecond)
	}
	p.succeed()
	t.disconnectLinux()
}

// queuesEnded makes the target close an I/O queue, and then the admin queue, while Linux writes.
func (t *T) queuesEnded(crc bool) {
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=64MiB")
	disk := t.joinLinux("2", reconnect...)
	p := t.busy(disk, 12)
	for _, qid := range []int{1, 0, 2} {
		time.Sleep(2 * time.Second)
		t.live()
		require.Equal(t, "1", target.control(fmt.Sprintf("end %s %d", HostNQN, qid)), "one queue is closed")
	}
	p.succeed()
	t.live()
	t.disconnectLinux()
}

// stopped stops the process of the target for longer than the host waits for an answer to Keep Alive.
func (t *T) stopped(crc bool) {
	target := t.serveNVMe(crc, "-backing", "file:"+t.file("disk")+",size=64MiB")
	disk := t.joinLinux("2", reconnect...)
	require.NoError(t, writeRandom(disk, 6, 1<<20))
	require.NoError(t, stopProcess(target.cmd.Process, true))
	time.Sleep(15 * time.Second)
	require.NoError(t, stopProcess(target.cmd.Process, false))
	time.Sleep(time.Second)
	t.live()
	dropCaches(t)
	require.NoError(t, checkRandom(disk, 6, 1<<20))
	const queues = 3 // an admin queue and two I/O queues
	require.True(t, t.within(40*time.Second, func() bool { return target.stats()["Queues"] == float64(queues) }), "the controller of before is gone: %v", target.stats())
	t.disconnectLinux()
}
