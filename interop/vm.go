package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/interop/pace"
)

// A vm is one boot of the guest.
type vm struct {
	kernel    *kernel
	initramfs string
	share     string // the folder that the guest mounts at /host
	accel     string // of QEMU
	console   string // the file that its serial line goes to
	pace      *pace.Gauge
}

// run boots the guest and waits until it stops by itself. Any other end is an error.
func (v *vm) run(ctx context.Context, limit time.Duration) error {
	ctx, cancel := v.pace.Context(ctx, limit, fmt.Errorf("the guest ran for more than %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-M", "pc", "-accel", v.accel, "-cpu", "max", "-smp", "2", "-m", "2048",
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+v.console,
		"-kernel", v.kernel.image(), "-initrd", v.initramfs,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check net.ifnames=0",
		"-virtfs", "local,path="+v.share+",mount_tag=host,security_model=none")
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("qemu: %w\n%s", err, tail(string(said), 10))
	}
	status, err := os.ReadFile(filepath.Join(v.share, "exit"))
	if err != nil {
		return errors.New("the guest stopped without running the lab")
	}
	if s := strings.TrimSpace(string(status)); s != "0" {
		said, _ := os.ReadFile(filepath.Join(v.share, "guest.log")) // without the file the status must suffice
		return fmt.Errorf("the guest's program ended with status %s: %s", s, strings.TrimSpace(tail(string(said), 1)))
	}
	return nil
}
