package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/interop/powercut"
)

const pmemDevice = "/dev/pmem0"

// persistentMemory: a file on the machine's NVDIMM, which the host examines when the
// machine has ended.
func persistentMemory(c *check, s *site) {
	c.ok("unmounting", unix.Unmount(s.dir, 0))
	if err := addressable(); err != nil {
		c.ok("making the NVDIMM addressable", err)
		return
	}
	c.ok("making a file system", copyDevice(pmemDevice, s.device))
	c.ok("mounting it", unix.Mount(pmemDevice, s.dir, "ext4", unix.MS_NOATIME, "dax=always"))
	m, err := commit.MapPMem(s.file(), caseFile)
	c.ok("mapping", err)
	if err != nil {
		return
	}
	p, err := newPair(file{m, m})
	c.ok("connecting", err)
	if err != nil {
		return
	}
	c.ok("a record", p.writeAndCommit(100, []byte(powercut.InPMem)))
	c.ok("a large one", p.writeAndCommit(pageLen, bytes.Repeat([]byte{'x'}, caseFile/2)))
	c.holds("reading", p, 100, []byte(powercut.InPMem))
	c.ok("closing", p.close())
}

// noPersistentMemory: a file on a disk is refused, and the error says why.
func noPersistentMemory(c *check, s *site) {
	_, err := commit.MapPMem(s.file(), caseFile)
	c.fails("mapping", err, errors.ErrUnsupported)
	if err != nil && !strings.Contains(err.Error(), "not on persistent memory") {
		c.ok("saying why", err)
	}
}

// addressable makes a block device of the NVDIMM whose pages can be mapped, like
// "ndctl create-namespace -m fsdax".
func addressable() error {
	const bus, driver = "/sys/bus/nd/devices/", "/sys/bus/nd/drivers/nd_pmem/"
	seed, err := os.ReadFile(bus + "region0/pfn_seed")
	if err != nil {
		return err
	}
	pfn := strings.TrimSpace(string(seed))
	for _, w := range []struct{ file, text string }{
		{driver + "unbind", "namespace0.0"},
		{bus + pfn + "/uuid", "6f1d8a3e-5b52-4a0c-9d43-0c8e3b1f7a25"}, // any
		{bus + pfn + "/mode", "ram"},
		{bus + pfn + "/namespace", "namespace0.0"},
		{driver + "bind", pfn},
	} {
		if err := os.WriteFile(w.file, []byte(w.text), 0); err != nil {
			return err
		}
	}
	return waitFor(func() error {
		_, err := os.Stat(pmemDevice)
		return err
	})
}

func copyDevice(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}

// waitFor waits until f returns no error.
func waitFor(f func() error) error {
	var err error
	for range 100 {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("not after five seconds: %w", err)
}
