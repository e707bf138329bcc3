package matrix

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// tool runs a program, which must succeed, and returns its output.
func (t *T) tool(name string, args ...string) string {
	p := t.start(t.command(name, args...), name)
	p.succeed()
	return p.out.String()
}

// command returns a command that runs in the first namespace.
func (t *T) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Ctx, name, args...)
}

// cli runs a command of nvme-cli, which must succeed.
func (t *T) cli(args ...string) string { return t.tool("nvme", args...) }

// fourQueues are the options for four I/O queues on a machine with two processors: two for writes, two for all else.
const fourQueues = "2 -W 2"

// joinLinux connects Linux's host to a target, with so many I/O queues, and returns its disk.
func (t *T) joinLinux(queues string, more ...string) string {
	t.connectLinux(OurIP, append(strings.Fields("-i "+queues), more...)...)
	return t.disk()
}

// patient sets a keep alive timeout that a busy machine does not exceed.
var patient = []string{"-k", "60"}

// connectLinux connects Linux's host, and disconnects it when the case ends. It uses patient unless the case sets a timeout.
func (t *T) connectLinux(addr string, more ...string) {
	if !slices.Contains(more, "-k") {
		more = append(slices.Clone(patient), more...)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("nvme", "disconnect-all").CombinedOutput(); err != nil {
			t.Errorf("nvme disconnect-all: %v: %s", err, out)
		}
	})
	t.cli(append([]string{
		"connect", "-t", "rdma", "-a", addr, "-s", nvmePort, "-n", nvmeSubsystem,
		"-q", HostNQN, "-I", nvmeHostID,
	}, more...)...)
}

func (t *T) disconnectLinux() {
	require.Contains(t, t.cli("disconnect", "-n", nvmeSubsystem), "disconnected", "nvme disconnect")
	require.Empty(t, controllers(), "no controller is left")
}

// controllers returns the names of Linux's NVMe controllers, such as "nvme0".
func controllers() []string {
	found, err := filepath.Glob("/sys/class/nvme/nvme*")
	if err != nil {
		return nil
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

// diskName matches the name of a namespace, but not of a path to it.
var diskName = regexp.MustCompile(`^nvme\d+n\d+$`)

// disks returns the devices of Linux's namespaces.
func disks() (names []string) {
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if diskName.MatchString(e.Name()) {
			names = append(names, "/dev/"+e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// disk waits until there is exactly one namespace, and returns its device.
func (t *T) disk() string {
	require.True(t, t.within(20*time.Second, func() bool {
		d := disks()
		if len(d) != 1 {
			return false
		}
		_, err := os.Stat(d[0])
		return err == nil && sysfs(d[0], "size") != "0"
	}), "one disk: %q", disks())
	return disks()[0]
}

// sysfs returns an attribute of a disk.
func sysfs(disk, attribute string) string {
	b, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(disk), attribute))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
