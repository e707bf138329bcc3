package matrix

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/stretchr/testify/require"
)

// mountPoint is where cases mount file systems.
const mountPoint = "/mnt"

// nvmeFileSystemCases make, fill and check file systems with Linux.
func nvmeFileSystemCases() []Case {
	var cases []Case
	for _, kind := range []string{"ext4", "xfs"} {
		c := Case{Name: "nvme/B2/" + kind, Role: Responder, Core: true, NoCapture: true, Limit: 5 * time.Minute}
		cases = append(cases, crcBoth(c, func(t *T, crc bool) {
			t.serveNVMe(crc, "-backing", "mem:512MiB")
			t.fileSystem(kind, t.joinLinux("2"), 16<<20)
			t.disconnectLinux()
		})...)
	}
	for _, v := range []struct {
		name    string
		mtu     int
		backing string
		flags   []string
	}{
		{"ord-1", 1500, "mem:512MiB,bs=512", []string{"-ord", "1", "-icd", "0"}},
		{"ord-2", 1500, "mem:512MiB", []string{"-ord", "2", "-icd", "8192"}},
		{"mtu-9000", 9000, "mem:512MiB", []string{"-ord", "4"}},
		{"srq", 1500, "mem:512MiB", []string{"-srq", "512"}},
	} {
		c := Case{Name: "nvme/B2/ext4-" + v.name, Role: Responder, NoCapture: true, Limit: 5 * time.Minute}
		cases = append(cases, crcBoth(c, func(t *T, crc bool) {
			t.nvmeMTU(v.mtu)
			t.serveNVMe(crc, append([]string{"-backing", v.backing}, v.flags...)...)
			t.fileSystem("ext4", t.joinLinux("2"), 16<<20)
			t.disconnectLinux()
		})...)
	}
	return cases
}

// nvmeMTU sets the MTU of the wire until the case ends.
func (t *T) nvmeMTU(n int) {
	set := func(n int) error {
		return commands(fmt.Sprintf("ip link set v0 mtu %d", n), fmt.Sprintf("ip -n %s link set v1 mtu %d", ourSpace, n))
	}
	require.NoError(t, set(n))
	t.Cleanup(func() {
		if err := set(1500); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// fileSystem makes a file system on a disk with Linux, writes a file of so many octets, which must be the same when the page
// cache is empty, and checks the file system.
func (t *T) fileSystem(kind, disk string, octets int64) {
	if kind == "xfs" {
		t.tool("mkfs.xfs", "-q", "-f", disk)
	} else {
		t.tool("mkfs.ext4", "-q", "-F", disk)
	}
	t.mount(kind, disk)
	file := mountPoint + "/file"
	require.NoError(t, writeRandom(file, 1, octets), "write the file")
	dropCaches(t)
	require.NoError(t, checkRandom(file, 1, octets), "the file when the page cache is empty")
	t.unmount()
	t.checkFileSystem(kind, disk)
}

// checkFileSystem runs the checker of a file system on a disk that is not mounted.
func (t *T) checkFileSystem(kind, disk string) {
	if kind == "xfs" {
		t.tool("xfs_repair", "-n", disk)
		return
	}
	t.tool("e2fsck", "-fn", disk)
}

func (t *T) mount(kind, disk string) {
	t.tool("mount", "-t", kind, disk, mountPoint)
	// The case may have done this already, so an error is not a failure.
	t.Cleanup(func() { _ = exec.Command("umount", mountPoint).Run() })
}

func (t *T) unmount() { t.tool("umount", mountPoint) }

func dropCaches(t *T) {
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0), "empty the page cache")
}

// randomOctets reads octets that only the seed determines.
type randomOctets struct{ r *rand.PCG }

func newRandomOctets(seed uint64) io.Reader { return randomOctets{rand.NewPCG(seed, 0)} }

// Read fills p; its length is a multiple of 8 in all calls but the last.
func (o randomOctets) Read(p []byte) (int, error) {
	var b [8]byte
	for i := 0; i < len(p); i += copy(p[i:], b[:]) {
		binary.LittleEndian.PutUint64(b[:], o.r.Uint64())
	}
	return len(p), nil
}

// writeRandom writes a file and makes it durable.
func writeRandom(file string, seed uint64, octets int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = io.CopyN(w, newRandomOctets(seed), octets)
	return errors.Join(err, w.Flush(), f.Sync(), f.Close())
}

// checkRandom compares a file, or the beginning of a disk, with what writeRandom has written.
func checkRandom(file string, seed uint64, octets int64) error {
	return checkOctets(file, newRandomOctets(seed), octets)
}

// zeroOctets reads zeros without end.
type zeroOctets struct{}

func (zeroOctets) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// checkOctets compares the beginning of a file.
func checkOctets(file string, want io.Reader, octets int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	return compareOctets(f, want, octets)
}

// compareOctets compares so many octets, and names the first one that differs.
func compareOctets(got, want io.Reader, octets int64) error {
	const part = 1 << 20
	g, w := make([]byte, part), make([]byte, part)
	for at := int64(0); at < octets; at += part {
		n := min(part, octets-at)
		if _, err := io.ReadFull(got, g[:n]); err != nil {
			return fmt.Errorf("at %d of %d: %w", at, octets, err)
		}
		if _, err := io.ReadFull(want, w[:n]); err != nil {
			return err
		}
		if bytes.Equal(g[:n], w[:n]) {
			continue
		}
		for i := range g[:n] {
			if g[i] != w[i] {
				return fmt.Errorf("octet %d of %d differs", at+int64(i), octets)
			}
		}
	}
	return nil
}
