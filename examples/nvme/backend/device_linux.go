package backend

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/fsync"
)

// A disk provides the operations on a block device other than I/O. Tests use one without a device.
type disk interface {
	size() (int64, error)         // octets
	sectors() (int, int64, error) // octets of a logical and of a physical sector
	// limits returns the maximum octets of a request to make zeros, and of one to discard; 0: unsupported.
	limits() (zeroes, discard int64)
	discard(off, n int64) error
}

// OpenDevice opens a block device as a Backend. It refuses a device that is mounted, or that another
// Backend or process has opened exclusively, with an error that matches [commit.ErrInUse]. A Flush
// flushes the cache of the device as well as that of the system.
func OpenDevice(c FileConfig) (Backend, error) {
	f, err := openDisk(c)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	v, err := deviceVolume(f, ioctls{f}, c)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("backend: %s: %w", c.Path, err)
	}
	return v, nil
}

func openDisk(c FileConfig) (*os.File, error) {
	info, err := os.Stat(c.Path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModeDevice|os.ModeCharDevice) != os.ModeDevice {
		return nil, fmt.Errorf("%s is no block device (a file is opened with file:%s)", c.Path, c.Path)
	}
	flags, err := openFlags(c)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.Path, flags|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: %w", commit.ErrInUse, err)
	}
	return f, err
}

// deviceVolume makes a volume of f, which is the disk d.
func deviceVolume(f *os.File, d disk, c FileConfig) (*volume, error) {
	if c.Size != 0 {
		return nil, errors.New("the size of a block device cannot be chosen")
	}
	size, err := d.size()
	if err != nil {
		return nil, fmt.Errorf("its size: %w", err)
	}
	logical, physical, err := d.sectors()
	if err != nil {
		return nil, fmt.Errorf("its sector size: %w", err)
	}
	if c.BlockSize == 0 {
		c.BlockSize = logical
	}
	if c.BlockSize < logical {
		return nil, fmt.Errorf("blocks of %d octets on a device with sectors of %d", c.BlockSize, logical)
	}
	g, err := newGeometry(size, c.BlockSize, c.ReadOnly)
	if err != nil {
		return nil, err
	}
	zeroes, discard := d.limits()
	if c.Discard && discard == 0 {
		return nil, errors.New("the device cannot discard")
	}
	if !c.ReadOnly { // what an earlier process has written is durable from here on
		if err := fsync.File(f); err != nil {
			return nil, err
		}
	}
	file, err := newLinuxFile(f, c, g)
	if err != nil {
		return nil, err
	}
	m := &device{linuxFile: file, disk: d, discards: c.Discard}
	t := Traits{Granularity: granularity(physical, g), Trims: zeroes > 0 || c.Discard, KeepsTrimmed: c.Discard}
	return newVolume(g, m, !c.Sync && !c.ReadOnly, t)
}

// A device is a linuxFile that may discard instead of making zeros.
type device struct {
	*linuxFile
	disk     disk
	discards bool
}

func (m *device) punch(off, n int64) error {
	if !m.discards {
		return m.linuxFile.punch(off, n)
	}
	return unsupported(again(func() error { return m.disk.discard(off, n) }))
}

// ioctls is the disk of an open device.
type ioctls struct{ f *os.File }

// size is BLKGETSIZE64.
func (d ioctls) size() (int64, error) {
	var n uint64
	err := d.ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&n))
	if err == nil && n > 1<<62 {
		return 0, fmt.Errorf("%d octets are too many", n)
	}
	return int64(n), err
}

func (d ioctls) sectors() (logical int, physical int64, err error) {
	fd := int(d.f.Fd())
	if logical, err = unix.IoctlGetInt(fd, unix.BLKSSZGET); err != nil {
		return 0, 0, err
	}
	n, err := unix.IoctlGetInt(fd, unix.BLKPBSZGET)
	return logical, int64(uint32(n)), err
}

// discard is BLKDISCARD.
func (d ioctls) discard(off, n int64) error {
	r := [2]uint64{uint64(off), uint64(n)}
	return d.ioctl(unix.BLKDISCARD, unsafe.Pointer(&r))
}

func (d ioctls) ioctl(req uintptr, arg unsafe.Pointer) error {
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, d.f.Fd(), req, uintptr(arg)); no != 0 {
		return no
	}
	return nil
}

// limits reads sysfs, for the queue of the device, or of the disk of which it is a partition.
func (d ioctls) limits() (zeroes, discard int64) {
	var st unix.Stat_t
	if unix.Fstat(int(d.f.Fd()), &st) != nil {
		return 0, 0
	}
	dir, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)))
	if err != nil {
		return 0, 0
	}
	read := func(name string) int64 {
		for _, queue := range []string{"queue", "../queue"} {
			if f, err := os.Open(filepath.Join(dir, queue, name)); err == nil {
				text, _ := io.ReadAll(io.LimitReader(f, 64))
				_ = f.Close()
				n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
				return n
			}
		}
		return 0
	}
	return read("write_zeroes_max_bytes"), read("discard_max_bytes")
}
