package matrix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// The directories that configure Linux's target and its disk in memory.
const (
	nvmetRoot = "/sys/kernel/config/nvmet"
	nullbRoot = "/sys/kernel/config/nullb"
)

// nvmetUUID is the UUID of the namespace of Linux's target.
const nvmetUUID = "0dd0f00d-1234-4678-9abc-def012345678"

// nvmet makes Linux's target offer a disk over transports, each on its own port from nvmePort on, until the case ends.
func (t *T) nvmet(disk string, transports ...string) {
	sub := filepath.Join(nvmetRoot, "subsystems", nvmeSubsystem)
	t.configure(sub, "attr_allow_any_host", "1")
	t.configure(filepath.Join(sub, "namespaces/1"), "device_path", disk, "device_uuid", nvmetUUID, "enable", "1")
	t.Cleanup(func() { t.write(filepath.Join(sub, "namespaces/1/enable"), "0") })
	for i, transport := range transports {
		port := filepath.Join(nvmetRoot, "ports", fmt.Sprint(i+1))
		t.configure(port, "addr_adrfam", "ipv4", "addr_trtype", transport, "addr_traddr", PeerIP, "addr_trsvcid", fmt.Sprint(4420+i))
		link := filepath.Join(port, "subsystems", nvmeSubsystem)
		require.NoError(t, os.Symlink(sub, link), "port %s", transport)
		t.Cleanup(func() {
			if err := os.Remove(link); err != nil {
				t.Errorf("port %s: %v", transport, err)
			}
		})
	}
}

// configure makes a directory of configfs, and sets attributes, given as names and values. It removes the directory when the case ends.
func (t *T) configure(dir string, attributes ...string) {
	require.NoError(t, os.Mkdir(dir, 0o755), "configure")
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("%v", err)
		}
	})
	for i := 0; i < len(attributes); i += 2 {
		t.write(filepath.Join(dir, attributes[i]), attributes[i+1])
	}
}

func (t *T) write(file, text string) {
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		t.Errorf("%s: %q: %v", file, text, err)
	}
}

// nullBlock makes a disk in memory, of 64 MiB, with sectors of the given size.
func (t *T) nullBlock(sector int) string {
	t.tool("modprobe", "null_blk", "nr_devices=0")
	t.configure(filepath.Join(nullbRoot, "lab"),
		"memory_backed", "1", "size", "64", "blocksize", fmt.Sprint(sector), "discard", "1", "power", "1")
	index, err := os.ReadFile(filepath.Join(nullbRoot, "lab/index"))
	require.NoError(t, err)
	// Linux 6.12 names the disk after the directory.
	for _, disk := range []string{"/dev/lab", "/dev/nullb" + strings.TrimSpace(string(index))} {
		if _, err := os.Stat(disk); err == nil {
			return disk
		}
	}
	require.Fail(t, "no null block device")
	return ""
}

// script runs a script of our host on our side, against Linux's target.
func (t *T) script(name string, crc bool) *process {
	return t.start(exec.Command("ip", "netns", "exec", ourSpace, "/tmp/guest", "nvme-host", name, PeerIP+":"+nvmePort, nvmeSubsystem, fmt.Sprint(crc)), name)
}

// nvmetCloses matches what Linux's target logs when a connection has ended: it tries to answer the Async Event Request that
// is still outstanding, and fails.
var nvmetCloses = []string{`nvmet_rdma: (post_recv cmd|sending cmd response) failed`}

// nvmetCases are C1 to C6: our host and Linux's target.
func nvmetCases() []Case {
	c := func(name string, core bool) Case {
		return Case{Name: "nvme/" + name, Role: Initiator, Core: core, NoCapture: true, Limit: 4 * time.Minute, Kernel: nvmetCloses}
	}
	var cases []Case
	cases = append(cases, crcBoth(c("C1/inspect", true), (*T).inspectNvmet)...)
	for _, sector := range []int{512, 4096} {
		cases = append(cases, crcBoth(c(fmt.Sprintf("C2/transfer-%d", sector), sector == 512), func(t *T, crc bool) {
			t.nvmet(t.nullBlock(sector), "rdma")
			t.script("transfer", crc).succeed()
		})...)
	}
	returns := c("C3/port-returns", false)
	// The host may be interrupted while it connects, and reports that with a Terminate (RFC 6581 section 9). siw logs the layer
	// and the type of a Terminate exchanged.
	returns.Kernel = append([]string{`siw: got TERMINATE. layer 0, type 2, code 5`}, nvmetCloses...)
	cases = append(cases, crcBoth(returns, (*T).portReturns)...)
	cases = append(cases, crcBoth(c("C4/disabled", false), (*T).namespaceDisabled)...)
	cases = append(cases, crcBoth(c("C5/statuses", true), func(t *T, crc bool) {
		t.nvmet(t.nullBlock(512), "rdma")
		t.script("statuses", crc).succeed()
	})...)
	wrong := c("C6/wrong-key", true)
	wrong.Kernel = append([]string{`siw: got TERMINATE. layer 1, type 0, code [01]`}, nvmetCloses...)
	return append(cases, crcBoth(wrong, func(t *T, crc bool) {
		t.nvmet(t.nullBlock(512), "rdma")
		t.script("wrong-key", crc).succeed()
		for _, code := range []string{"0", "1"} { // invalid STag, bounds
			require.Contains(t, t.kernelSays(), "siw: got TERMINATE. layer 1, type 0, code "+code, "siw gets our Terminate")
		}
	})...)
}

// inspectNvmet compares what our host and our program show about Linux's target with the target's configuration.
func (t *T) inspectNvmet(crc bool) {
	t.nvmet(t.nullBlock(512), "rdma")
	p := t.script("inspect", crc)
	p.succeed()
	said := p.out.String()
	require.Contains(t, said, "entry "+nvmeSubsystem+" "+PeerIP+":"+nvmePort)
	uuid := strings.ReplaceAll(nvmetUUID, "-", "")
	for _, queues := range []string{"1", "4"} {
		require.Regexp(t, fmt.Sprintf("namespace 1 size %d block 512 uuid %s nguid [0-9a-f]{32} queues %s ", 64<<20, uuid, queues), said)
	}
	require.Contains(t, t.nvmeOursSays("discover", PeerIP+":"+nvmePort), nvmeSubsystem, "nvme discover of ours")
}

// portReturns removes the port of Linux's target and restores it while our host uses it.
func (t *T) portReturns(crc bool) {
	t.nvmet(t.nullBlock(512), "rdma")
	p := t.script("steady", crc)
	p.says("steady")
	link := filepath.Join(nvmetRoot, "ports/1/subsystems", nvmeSubsystem)
	require.NoError(t, os.Remove(link), "the port is taken away")
	time.Sleep(3 * time.Second)
	require.NoError(t, os.Symlink(filepath.Join(nvmetRoot, "subsystems", nvmeSubsystem), link), "the port is there again")
	before := p.out.String()
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	p.succeed()
	require.NotEqual(t, before, p.out.String())
	require.Contains(t, p.out.String(), "rounds ")
}

// namespaceDisabled disables the namespace of Linux's target while our host uses it, which must report that and not hang, and enables it again.
func (t *T) namespaceDisabled(crc bool) {
	t.nvmet(t.nullBlock(512), "rdma")
	p := t.script("steady", crc)
	p.says("steady")
	enable := filepath.Join(nvmetRoot, "subsystems", nvmeSubsystem, "namespaces/1/enable")
	t.write(enable, "0")
	require.True(t, t.endsWithin(p.done, 30*time.Second), "our host does not hang")
	require.Error(t, p.err)
	require.Regexp(t, "namespace", p.out.String(), "the error is that of a namespace that is not there")
	t.write(enable, "1")
	t.script("transfer", crc).succeed()
}
