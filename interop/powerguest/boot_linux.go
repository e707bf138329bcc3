package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// boot mounts what every system has, and loads the modules that were put into the
// initramfs, in their order.
func boot() error {
	for _, m := range []struct{ what, where string }{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := os.MkdirAll(m.where, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.what, m.where, m.what, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.where, err)
		}
	}
	order, err := os.ReadFile("/modules/order")
	if err != nil {
		return err
	}
	for m := range strings.FieldsSeq(string(order)) {
		if err := load("/modules/" + m + ".ko"); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	return os.MkdirAll(dataDir, 0o755)
}

func load(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	return errors.Join(unix.FinitModule(int(f.Fd()), "", 0), f.Close())
}

// networkUp gives the machine the address that QEMU's network has for its guests.
func networkUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written
	r, err := unix.NewIfreq("eth0")
	if err != nil {
		return err
	}
	for _, set := range []struct {
		what uint
		addr []byte
	}{{unix.SIOCSIFADDR, []byte{10, 0, 2, 15}}, {unix.SIOCSIFNETMASK, []byte{255, 255, 255, 0}}} {
		if err := r.SetInet4Addr(set.addr); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, set.what, r); err != nil {
			return err
		}
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}
