package backend

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/sysfail"
)

// allocated returns how many octets of a file are allocated on the disk.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

func TestNVME_71_TrimGivesRoomBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	b, err := OpenFile(FileConfig{Path: path, Size: 2 << 20, BlockSize: 512})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	if !Describe(b).Trims {
		t.Skip("the file system has no holes")
	}
	want := fill(2<<20, 1)
	require.NoError(t, b.WriteAt(ctx, want, 0, false))
	require.NoError(t, b.Flush(ctx))
	require.GreaterOrEqual(t, allocated(t, path), int64(2<<20))
	// The range begins and ends within blocks of the file system.
	require.NoError(t, b.Trim(ctx, 512, 1<<20))
	clear(want[512 : 512+1<<20])
	requireEqual(t, want, mustRead(t, b, 0, b.Size()), "zeros, also at the ends")
	require.Less(t, allocated(t, path), int64(1<<20+16<<10))
	require.NoError(t, b.WriteZeroes(ctx, 1<<20, 1<<20, false, false))
	require.Greater(t, allocated(t, path), int64(900<<10), "zeros that keep their room")
	require.NoError(t, b.WriteZeroes(ctx, 1<<20, 1<<20, true, true))
	require.Less(t, allocated(t, path), int64(64<<10), "zeros that do not")
	requireEqual(t, want[:512], mustRead(t, b, 0, 512), "the first block stays")
}

// limitedChild is set in the environment of a test process with a limited file size.
const limitedChild = "BACKEND_TEST_LIMITED_FILE"

// TestNVME_76_FileHasNoSpace runs in a process of its own, whose files are limited to one megabyte.
func TestNVME_76_FileHasNoSpace(t *testing.T) {
	if path := os.Getenv(limitedChild); path != "" {
		limitedFile(t, path)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNVME_76_FileHasNoSpace$")
	cmd.Env = append(os.Environ(), limitedChild+"="+filepath.Join(t.TempDir(), "disk"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func limitedFile(t *testing.T, path string) {
	b, err := OpenFile(FileConfig{Path: path, Size: 4 << 20})
	require.NoError(t, err)
	signal.Ignore(unix.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}))
	for _, fua := range []bool{false, true} {
		require.NoError(t, b.WriteAt(ctx, fill(4096, 1), 0, fua))
		require.ErrorIs(t, b.WriteAt(ctx, fill(4096, 1), 2<<20, fua), ErrNoSpace)
	}
	require.NoError(t, b.Flush(ctx), "the Backend has not failed")
	require.NoError(t, b.Close())
}

// TestNVME_76_FullFileSystem uses a file system of one megabyte.
func TestNVME_76_FullFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a file system of its own takes root")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	defer func() { require.NoError(t, unix.Unmount(dir, 0)) }()
	b, err := OpenFile(FileConfig{Path: filepath.Join(dir, "disk"), Size: 4 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	require.NoError(t, b.WriteAt(ctx, fill(512<<10, 1), 0, false))
	require.ErrorIs(t, b.WriteAt(ctx, fill(1<<20, 1), 1<<20, false), ErrNoSpace)
	require.NoError(t, b.Flush(ctx))
	// It has no quick way to zero a range, and no room for zeros.
	require.ErrorIs(t, b.WriteZeroes(ctx, 2<<20, 1<<20, false, false), ErrNoSpace)
	require.NoError(t, b.Trim(ctx, 0, 4<<20))
	require.NoError(t, b.WriteAt(ctx, fill(512<<10, 1), 1<<20, true), "there is room again")
	requireEqual(t, fill(512<<10, 1), mustRead(t, b, 1<<20, 512<<10), "which was written")
}

func TestNVME_65_FUAWithoutTheCall(t *testing.T) {
	b, err := OpenFile(FileConfig{Path: filepath.Join(t.TempDir(), "disk"), Size: 1 << 20})
	require.NoError(t, err)
	v := b.(*volume)
	m := v.medium.(*linuxFile)
	require.NotNil(t, m.dsync)
	require.NoError(t, b.WriteAt(ctx, fill(4096, 1), 0, true))
	require.True(t, v.writesDurably.Load(), "the kernel has it")
	require.NoError(t, m.dsync.Close())
	m.dsync = nil
	require.NoError(t, b.WriteAt(ctx, fill(4096, 2), 0, true))
	require.False(t, v.writesDurably.Load(), "not asked again")
	requireEqual(t, fill(4096, 2), mustRead(t, b, 0, 4096), "written")
	require.NoError(t, b.Close())
}

// TestNVME_66_FileSystemThatHasBecomeReadOnlyFailsTheBackend: the kernel's sync of such a file succeeds and writes
// nothing.
func TestNVME_66_FileSystemThatHasBecomeReadOnlyFailsTheBackend(t *testing.T) {
	for name, c := range map[string]struct {
		sync    bool // dsync
		durable func(b Backend) error
	}{
		"Flush":       {false, func(b Backend) error { return b.Flush(ctx) }},
		"FUA":         {false, func(b Backend) error { return b.WriteAt(ctx, make([]byte, 512), 0, true) }},
		"dsync":       {true, func(b Backend) error { return b.WriteAt(ctx, make([]byte, 512), 0, false) }},
		"dsync, zero": {true, func(b Backend) error { return b.WriteZeroes(ctx, 0, 512, false, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := OpenFile(FileConfig{Path: filepath.Join(t.TempDir(), "disk"), Size: 1 << 20, BlockSize: 512, Sync: c.sync})
			require.NoError(t, err)
			defer func() { require.NoError(t, b.Close()) }()
			require.NoError(t, b.WriteAt(ctx, make([]byte, 512), 512, false))
			frozen := true
			b.(*volume).medium.(*linuxFile).frozen = func(int) (bool, error) { return frozen, nil }
			require.ErrorIs(t, c.durable(b), unix.EROFS)
			frozen = false
			require.ErrorIs(t, b.Flush(ctx), unix.EROFS, "it stays failed")
		})
	}
}

// TestNVME_69_SyncThatIsInterruptedHasFailed: EINTR may be a page's error, like any errno. The system reports it once.
func TestNVME_69_SyncThatIsInterruptedHasFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	c := FileConfig{Path: path, Size: 1 << 20}
	b, err := OpenFile(c)
	require.NoError(t, err)
	m := b.(*volume).medium.(*linuxFile)
	require.ErrorIs(t, sysfail.Run(t, unix.EINTR, m.sync, unix.SYS_FDATASYNC), unix.EINTR)
	require.NoError(t, b.Close())

	for what, open := range map[string]func() error{
		"file": func() error {
			_, err := OpenFile(c)
			return err
		},
		"device": func() error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = deviceVolume(f, &testDisk{octets: 1 << 20, logical: 512}, FileConfig{})
			return errors.Join(err, f.Close())
		},
	} {
		require.ErrorIs(t, sysfail.Run(t, unix.EINTR, open, unix.SYS_FSYNC), unix.EINTR, what)
	}
}

func TestUnsupported(t *testing.T) {
	require.NoError(t, unsupported(nil))
	require.ErrorIs(t, unsupported(unix.EOPNOTSUPP), errUnsupported)
	require.ErrorIs(t, unsupported(unix.EIO), unix.EIO)
	require.NotErrorIs(t, unsupported(unix.EIO), errUnsupported)
}

func TestNVME_76_UnalignedBuffersOfDirectIO(t *testing.T) {
	b, _ := directSubject(FileConfig{Direct: true})(t)
	whole := make([]byte, 2<<20+8)
	p := whole[8:]
	require.False(t, isAligned(p))
	for _, fua := range []bool{false, true} {
		copy(p, fill(2<<20, 1))
		require.NoError(t, b.WriteAt(ctx, p, 4096, fua))
		clear(p)
		require.NoError(t, b.ReadAt(ctx, p, 4096))
		requireEqual(t, fill(2<<20, 1), p, "written and read by other buffers")
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = b.WriteAt(ctx, p[:4096], 4096, true) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = b.ReadAt(ctx, p[:4096], 4096) }))
}

func TestAlignedBuffers(t *testing.T) {
	p := make([]byte, 2*directMost+directAlign+512)
	for i := range p {
		if isAligned(p[i:]) {
			p = p[i : i+2*directMost+512]
			break
		}
	}
	require.True(t, isAligned(p))
	require.False(t, isAligned(p[512:]))
	require.True(t, isAligned(nil))
	var joined bytes.Buffer
	at := int64(1000)
	copy(p, fill(int64(len(p)), 3))
	require.NoError(t, eachAligned(p, at, func(buf, part []byte, off int64) error {
		require.True(t, isAligned(buf))
		require.Len(t, part, len(buf))
		require.Equal(t, at, off)
		at += int64(len(part))
		joined.Write(part)
		return nil
	}))
	requireEqual(t, p, joined.Bytes(), "all of it")
	failure := errors.New("no")
	require.ErrorIs(t, eachAligned(p, 0, func(_, _ []byte, _ int64) error { return failure }), failure)
}

// A testDisk makes a regular file play a block device.
type testDisk struct {
	octets            int64
	logical           int
	zeroes, discards  int64
	failure           error
	trimmed           [][2]int64
	failureOfDiscards error
}

func (d *testDisk) size() (int64, error)         { return d.octets, d.failure }
func (d *testDisk) sectors() (int, int64, error) { return d.logical, 4096, nil }
func (d *testDisk) limits() (int64, int64)       { return d.zeroes, d.discards }
func (d *testDisk) discard(off, n int64) error {
	d.trimmed = append(d.trimmed, [2]int64{off, n})
	return d.failureOfDiscards
}

func openTestDisk(t *testing.T, d *testDisk, c FileConfig) (*volume, error) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "device"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(d.octets))
	v, err := deviceVolume(f, d, c)
	if err != nil {
		require.NoError(t, f.Close())
		return nil, err
	}
	t.Cleanup(func() { _ = v.Close() })
	return v, nil
}

func TestNVME_76_SizesOfADevice(t *testing.T) {
	v, err := openTestDisk(t, &testDisk{octets: 1<<20 + 512, logical: 512, zeroes: 1}, FileConfig{})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20+512, v.Size())
	require.Equal(t, 512, v.BlockSize(), "that of its sectors")
	require.Equal(t, Traits{Trims: true, Granularity: 4096}, v.Traits())
	v, err = openTestDisk(t, &testDisk{octets: 1<<20 + 512, logical: 512}, FileConfig{BlockSize: 4096})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, v.Size())
	require.False(t, v.Traits().Trims, "the device makes no zeros")
	for what, c := range map[string]struct {
		d    testDisk
		c    FileConfig
		want string
	}{
		"block":   {testDisk{octets: 1 << 20, logical: 4096}, FileConfig{BlockSize: 512}, "blocks of 512 octets on a device with sectors of 4096"},
		"size":    {testDisk{octets: 1 << 20, logical: 512}, FileConfig{Size: 1 << 20}, "cannot be chosen"},
		"discard": {testDisk{octets: 1 << 20, logical: 512}, FileConfig{Discard: true}, "cannot discard"},
		"failure": {testDisk{octets: 1 << 20, logical: 512, failure: unix.EIO}, FileConfig{}, "input/output error"},
		"empty":   {testDisk{logical: 512}, FileConfig{}, "less than one block"},
	} {
		_, err := openTestDisk(t, &c.d, c.c)
		require.ErrorContains(t, err, c.want, what)
	}
}

func TestNVME_72_DiscardNeedNotLeaveZeros(t *testing.T) {
	d := &testDisk{octets: 1 << 20, logical: 512, discards: 1}
	v, err := openTestDisk(t, d, FileConfig{Discard: true})
	require.NoError(t, err)
	require.True(t, v.Traits().KeepsTrimmed)
	require.NoError(t, v.WriteAt(ctx, fill(4096, 1), 0, false))
	require.NoError(t, v.Trim(ctx, 512, 1024))
	require.Equal(t, [][2]int64{{512, 1024}}, d.trimmed)
	require.NoError(t, v.WriteZeroes(ctx, 0, 4096, true, false))
	require.Len(t, d.trimmed, 1, "zeros are never made by a discard")
	requireZeros(t, v, 0, 4096, "zeros")
	d.failureOfDiscards = unix.EIO
	require.ErrorIs(t, v.Trim(ctx, 0, 512), ErrWrite)
	d.failureOfDiscards = unix.EOPNOTSUPP
	require.NoError(t, v.WriteAt(ctx, fill(4096, 1), 0, false))
	require.NoError(t, v.Trim(ctx, 0, 512))
	requireZeros(t, v, 0, 512, "zeros in its place")
}

func TestNVME_77_OneBackendOfADevice(t *testing.T) {
	path := loopDevice(t, suiteSize)
	b, err := OpenDevice(FileConfig{Path: path})
	require.NoError(t, err)
	_, err = OpenDevice(FileConfig{Path: path})
	require.ErrorIs(t, err, commit.ErrInUse)
	require.NoError(t, b.Close())
	_, err = OpenFile(FileConfig{Path: path})
	require.ErrorContains(t, err, "opened with block:")
}

func TestNVME_66_LossOfAWriteThroughFailsTheBackend(t *testing.T) {
	f := newTestFake(t, FakeConfig{Through: true})
	f.Inject(Fault{Call: CallWrite, Times: 1, Err: lossError{unix.EIO}})
	require.ErrorIs(t, f.WriteAt(ctx, fill(4096, 1), 0, false), ErrSync, "pages of other writes may be lost")
	requireFailed(t, f)
}
