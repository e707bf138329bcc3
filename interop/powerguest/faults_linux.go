package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/interop/powercut"
)

const (
	pageLen  = 4096
	caseFile = 1 << 20 // octets of the file of most cases
)

// A site is where a case has its file.
type site struct {
	device string // block device
	dir    string // where its file system is mounted
}

func (s *site) file() string { return s.dir + "/file" }

// faults holds the functions of the cases; see [powercut.Faults].
var faults = map[string]func(c *check, s *site){
	"full/reserved":    fullReserved,
	"full/holes":       fullHoles,
	"eio/write/map":    func(c *check, s *site) { failingWrite(c, s, powercut.Mapped) },
	"eio/write/file":   func(c *check, s *site) { failingWrite(c, s, powercut.Positioned) },
	"eio/write/direct": failingDirectWrite,
	"eio/flush":        func(c *check, s *site) { failingDisk(c, s, powercut.Positioned, powercut.FailFlush) },
	"eio/device":       failingDevice,
	"sealed/map":       func(c *check, s *site) { failingDisk(c, s, powercut.Mapped, powercut.Seal) },
	"sealed/file":      func(c *check, s *site) { failingDisk(c, s, powercut.Positioned, powercut.Seal) },
	"truncated/map":    truncated,
	"device":           device,
	"pmem":             persistentMemory,
	"pmem/refused":     noPersistentMemory,
	"aborted/map":      func(c *check, s *site) { turnsReadOnly(c, s, powercut.Mapped, abort) },
	"aborted/file":     func(c *check, s *site) { turnsReadOnly(c, s, powercut.Positioned, abort) },
	"readonly/map":     func(c *check, s *site) { turnsReadOnly(c, s, powercut.Mapped, remountAll) },
	"readonly/file":    func(c *check, s *site) { turnsReadOnly(c, s, powercut.Positioned, remountAll) },
}

// runFaults runs the cases and prints the outcome of each.
func runFaults() error {
	failed := 0
	for i, name := range powercut.Faults {
		s := &site{device: fmt.Sprintf("/dev/vd%c", 'a'+i), dir: "/mnt/" + strings.ReplaceAll(name, "/", "-")}
		c := new(check)
		c.ok("set-up", s.mount())
		if c.err() == nil {
			faults[name](c, s)
		}
		verdict := "passed"
		if err := c.err(); err != nil {
			failed++
			verdict = "FAILED: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Printf("%s case %s %s\n", powercut.Sign, name, verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return nil
}

func (s *site) mount() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	return unix.Mount(s.device, s.dir, "ext4", unix.MS_NOATIME, "")
}

// open opens the site's file and connects to it.
func (c *check) open(s *site, backing string) *pair {
	f, err := openAs(backing, s.file(), caseFile)
	if err == nil {
		var p *pair
		if p, err = newPair(f); err == nil {
			return p
		}
	}
	c.ok("opening", err)
	return nil
}

// fill takes all the room that a file system has left.
func (c *check) fill(s *site) {
	f, err := os.Create(s.dir + "/filler")
	c.ok("filling the disk", err)
	if err != nil {
		return
	}
	for n := 1 << 20; n >= pageLen; n /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, n))
		}
		c.fails("filling the disk", err, syscall.ENOSPC)
	}
	c.ok("syncing what fills it", f.Sync())
	c.ok("closing what fills it", f.Close())
}

// fullReserved: a file that was opened has room, whatever becomes of the disk.
func fullReserved(c *check, s *site) {
	for _, backing := range []string{powercut.Mapped, powercut.Positioned, powercut.Direct} {
		_, err := openAs(backing, s.file(), 1<<30)
		c.fails("more than the disk has, "+backing, err, syscall.ENOSPC)
	}
	p := c.open(s, powercut.Mapped)
	if p == nil {
		return
	}
	c.fill(s)
	for off := 0; off < caseFile; off += caseFile / 8 {
		c.ok("writing to a full disk", p.writeAndCommit(off, bytes.Repeat([]byte{'x'}, caseFile/8)))
	}
	c.ok("closing", p.close())
	_, err := openAs(powercut.Mapped, s.file(), 2*caseFile)
	c.fails("growing on a full disk", err, syscall.ENOSPC)
	if p = c.open(s, powercut.Mapped); p == nil {
		return
	}
	c.holds("growing has spoiled nothing", p, caseFile/2, bytes.Repeat([]byte{'x'}, pageLen))
	c.ok("nor the room", p.writeAndCommit(0, bytes.Repeat([]byte{'y'}, caseFile)))
	c.ok("closing", p.close())
}

// fullHoles: a file with holes is its owner's choice, and a Write to a hole that finds no
// room is reported.
func fullHoles(c *check, s *site) {
	c.ok("making a file", os.WriteFile(s.file(), bytes.Repeat([]byte{'x'}, pageLen), 0o600))
	c.ok("with holes", os.Truncate(s.file(), caseFile))
	c.fill(s)
	_, err := openAs(powercut.Mapped, s.file(), caseFile)
	c.fails("reserving room for the holes", err, syscall.ENOSPC)
	for _, backing := range []string{powercut.Mapped, powercut.Positioned} {
		f, err := openAs(backing, s.file(), 0)
		c.ok("opening it as it is, "+backing, err)
		if err != nil {
			continue
		}
		p, err := newPair(f)
		c.ok("connecting", err)
		if err != nil {
			continue
		}
		c.ok("writing where there is room", p.writeAndCommit(0, bytes.Repeat([]byte{'y'}, pageLen)))
		c.fails("writing where there is none", p.writeAndCommit(pageLen, make([]byte, pageLen)), commit.ErrDataLost)
		c.fails("is not forgotten", p.commit(pageLen, pageLen), commit.ErrDataLost)
		c.ok("the stream lives, and what is durable still is", p.commit(0, pageLen))
		c.ok("closing", p.close())
	}
}

// page returns a page that begins with a text.
func page(text string) []byte { return append([]byte(text), make([]byte, pageLen-len(text))...) }

// failingWrite: the disk fails when the system writes back a page.
func failingWrite(c *check, s *site, backing string) {
	p := c.open(s, backing)
	if p == nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	c.ok("what will be lost", p.writeAndCommit(pageLen, page("older")))
	c.fails("a write that fails", p.writeAndCommit(pageLen, page(powercut.FailWrite)), commit.ErrDataLost)
	c.fails("is not forgotten", p.commit(pageLen, pageLen), commit.ErrDataLost)
	c.ok("the stream lives, and the first record is durable", p.commit(0, pageLen))
	c.holds("it can be read", p, 0, page("first"))
	c.ok("a record elsewhere", p.writeAndCommit(2*pageLen, page("second")))
	c.ok("closing", p.close())

	if p = c.open(s, backing); p == nil {
		return
	}
	c.holds("a process that opens it later reads what is on the disk", p, pageLen, page("older"))
	c.ok("and has it durable", p.commit(pageLen, pageLen))
	c.fails("it fails again", p.writeAndCommit(pageLen, page(powercut.FailWrite)), commit.ErrDataLost)
	c.ok("writing it again", p.writeAndCommit(pageLen, page("newer")))
	c.holds("is as new", p, pageLen, page("newer"))
	c.ok("closing", p.close())
}

// failingDirectWrite: without the page cache, the Write itself fails.
func failingDirectWrite(c *check, s *site) {
	p := c.open(s, powercut.Direct)
	if p == nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	c.fails("a write that fails", p.writeAndCommit(pageLen, page(powercut.FailWrite)), commit.ErrDataLost)
	c.fails("is not forgotten", p.commit(pageLen, pageLen), commit.ErrDataLost)
	c.ok("the stream lives, and the first record is durable", p.commit(0, pageLen))
	c.ok("writing it again", p.writeAndCommit(pageLen, page("newer")))
	c.ok("closing", p.close())
}

// failingDisk: the disk fails to make the data durable, or is write-protected from then
// on. The fault may first hit the file system's journal.
func failingDisk(c *check, s *site, backing, mark string) {
	p := c.open(s, backing)
	if p == nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	var failed *commit.Error
	if err := p.writeAndCommit(pageLen, page(mark)); !errors.As(err, &failed) {
		c.ok("what is not durable is a status", fmt.Errorf("have %w", err))
		return
	}
	if err := p.commit(pageLen, pageLen); !errors.As(err, &failed) {
		c.ok("which is not forgotten", fmt.Errorf("have %w", err))
	}
	c.holds("the stream lives", p, 0, page("first"))
	c.ok("closing", p.close())
}

// failingDevice: a device without a file system, which continues to work.
func failingDevice(c *check, s *site) {
	c.ok("unmounting", unix.Unmount(s.dir, 0))
	f, err := commit.OpenFile(s.device, nil)
	c.ok("opening the device", err)
	if err != nil {
		return
	}
	p, err := newPair(file{f, f})
	c.ok("connecting", err)
	if err != nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	c.fails("a flush that fails", p.writeAndCommit(pageLen, page(powercut.FailFlush)), commit.ErrDataLost)
	c.fails("is not forgotten", p.commit(pageLen, pageLen), commit.ErrDataLost)
	c.ok("writing it again", p.writeAndCommit(pageLen, page("newer")))
	c.fails("a write that fails", p.writeAndCommit(2*pageLen, page(powercut.FailWrite)), commit.ErrDataLost)
	c.ok("elsewhere", p.writeAndCommit(3*pageLen, page("elsewhere")))
	c.ok("closing", p.close())
}

// truncated: another program makes the file shorter.
func truncated(c *check, s *site) {
	p := c.open(s, powercut.Mapped)
	if p == nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	c.ok("another", p.write(pageLen, page("second")))
	c.ok("truncating", os.Truncate(s.file(), pageLen))
	c.fails("what was cut away", p.commit(pageLen, pageLen), commit.ErrDataLost)
	c.fails("writing where nothing is", p.writeAndCommit(2*pageLen, page("third")), commit.ErrDataLost)
	c.ok("the stream lives, and what was durable is", p.commit(0, pageLen))
	_, err := p.read(2*pageLen, 1)
	c.fails("reading what is gone ends the stream", err, net.ErrClosed)
	c.ok("connecting again", p.connect())
	c.holds("what is left can be read", p, 0, page("first"))
	c.ok("closing", p.close())
}

// device: a block device instead of a file, opened in each way.
func device(c *check, s *site) {
	c.ok("unmounting", unix.Unmount(s.dir, 0))
	for i, backing := range []string{powercut.Mapped, powercut.Positioned, powercut.Direct} {
		f, err := openAs(backing, s.device, 0)
		c.ok("opening "+backing, err)
		if err != nil {
			continue
		}
		p, err := newPair(f)
		c.ok("connecting", err)
		if err != nil {
			continue
		}
		text := page("by " + backing)
		c.ok("writing "+backing, p.writeAndCommit(100+i*pageLen, text))
		c.holds("reading "+backing, p, 100+i*pageLen, text)
		c.ok("closing", p.close())
		raw, err := os.Open(s.device)
		c.ok("opening it beside", err)
		got := make([]byte, len(text))
		_, err = raw.ReadAt(got, int64(100+i*pageLen))
		c.ok("reading it beside", err)
		if !bytes.Equal(got, text) {
			c.ok(backing, errors.New("the device has something else"))
		}
		c.ok("closing it", raw.Close())
	}
}

// abort makes a file system read-only, like an error in its journal.
func abort(s *site) error {
	return unix.Mount("", s.dir, "", unix.MS_REMOUNT|unix.MS_NOATIME, "abort")
}

// remountAll makes all file systems read-only, like an administrator in an emergency.
func remountAll(s *site) error {
	log, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(log) }()
	if _, err := unix.Seek(log, 0, io.SeekEnd); err != nil {
		return os.NewSyscallError("seek", err)
	}
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("u"), 0); err != nil {
		return err
	}
	// The kernel does this asynchronously, for all file systems in turn: the next case must not
	// mount one before it is done.
	if err := waitFor(func() error { return logged(log, "Emergency Remount complete") }); err != nil {
		return err
	}
	return waitFor(func() error {
		var st unix.Statfs_t
		if err := unix.Statfs(s.dir, &st); err != nil || st.Flags&unix.ST_RDONLY == 0 {
			return errors.Join(err, errors.New("it can still be written to"))
		}
		return nil
	})
}

// logged returns an error unless the kernel has logged what since the last check.
func logged(log int, what string) error {
	var record [8 << 10]byte
	for {
		n, err := unix.Read(log, record[:])
		switch {
		case err != nil:
			return fmt.Errorf("%q is not in the kernel's log: %w", what, err)
		case bytes.Contains(record[:n], []byte(what)):
			return nil
		}
	}
}

// turnsReadOnly: a file system becomes read-only while one of its files is in use.
func turnsReadOnly(c *check, s *site, backing string, turn func(*site) error) {
	p := c.open(s, backing)
	if p == nil {
		return
	}
	c.ok("a first record", p.writeAndCommit(0, page("first")))
	c.ok("another", p.write(pageLen, page("second")))
	c.ok("turning read only", turn(s))
	c.fails("it is not durable for certain", p.commit(pageLen, pageLen), commit.ErrReadOnly)
	c.fails("and stays so", p.commit(pageLen, pageLen), commit.ErrReadOnly)
	c.fails("nor is what comes later, which the system takes and will never write", p.writeAndCommit(2*pageLen, page("third")), commit.ErrReadOnly)
	c.ok("what was durable still is", p.commit(0, pageLen))
	c.holds("the stream lives", p, 0, page("first"))
	c.ok("closing", p.close())
}
