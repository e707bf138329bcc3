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

// tool runs a program to its end, which must be good, and returns what it says.
func (t *T) tool(name string, args ...string) string {
	p := t.start(t.command(name, args...), name)
	p.succeed()
	return p.out.String()
}

// command is a program in the first namespace.
func (t *T) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Ctx, name, args...)
}

// cli runs a command of nvme-cli.
func (t *T) cli(args ...string) string { return t.tool("nvme", args...) }

// fourQueues are the options of four I/O queues on a machine with two processors: two for writes, two for all else.
const fourQueues = "2 -W 2"

// joinLinux connects Linux's host to a target, with so many I/O queues, and returns its disk.
func (t *T) joinLinux(queues string, more ...string) string {
	t.connectLinux(OurIP, append(strings.Fields("-i "+queues), more...)...)
	return t.disk()
}

// patient is a time of Keep Alive that a busy machine does not exceed.
var patient = []string{"-k", "60"}

// connectLinux connects Linux's host, and disconnects it when the case is over. It is patient, unless the case says otherwise.
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

// controllers are the controllers of NVMe that Linux has: "nvme0".
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

// diskName is that of a namespace, and not of a path to it.
var diskName = regexp.MustCompile(`^nvme\d+n\d+$`)

// disks are the namespaces that Linux has, as devices.
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

// disk waits for the one namespace that there is.
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

// sysfs is an attribute of a disk.
func sysfs(disk, attribute string) string {
	b, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(disk), attribute))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
