package commit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// record returns a record, and a path in a directory of its own.
func record(t *testing.T) (r *recorder, path string) {
	r = new(recorder)
	t.Cleanup(func() { require.Zero(t, r.descriptors, "all that was opened is closed") })
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return r, filepath.Join(dir, "data")
}

const octets = 64 << 10

// made are the calls that create a file.
var made = []string{
	"open data rw create", "stat data", "lock data", "size data",
	"fstat data", "fstatfs data", "fallocate data 65536", "size data",
	"fsync data", "forget data", "stat data", "open dir", "fsync dir", "close dir",
}

// opens are the ways to open a file of some octets, and the calls after those that create it.
var opens = map[string]struct {
	open  func(sys system, path string, size int64) (backing, error)
	calls []string
}{
	"file": {func(sys system, path string, size int64) (backing, error) {
		return openFile(sys, path, &FileOptions{Size: size})
	}, nil},
	"direct": {func(sys system, path string, size int64) (backing, error) {
		return openFile(sys, path, &FileOptions{Size: size, Direct: true})
	}, []string{"open data rw direct", "stat data"}},
	"mapping": {func(sys system, path string, size int64) (backing, error) {
		return mapShared(sys, path, size)
	}, []string{fmt.Sprintf("mmap data 65536 %#x", unix.MAP_SHARED)}},
	"persistent memory": {func(sys system, path string, size int64) (backing, error) {
		return mapPMem(sys, path, size)
	}, []string{fmt.Sprintf("mmap data 65536 %#x", unix.MAP_SHARED_VALIDATE|unix.MAP_SYNC)}},
}

// TestFileSystemThatTellsNoSize, such as tmpfs without a limit, or a file system in user space that reports none.
func TestFileSystemThatTellsNoSize(t *testing.T) {
	r, path := record(t)
	r.boundless = true
	b, err := openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err)
	require.EqualValues(t, octets, b.Size())
	require.NoError(t, b.Close())
}

// TestCMT_13_CallsThatMakeAFile: it is durable, with its name and its room, before it is open.
func TestCMT_13_CallsThatMakeAFile(t *testing.T) {
	for what, x := range opens {
		t.Run(what, func(t *testing.T) {
			r, path := record(t)
			b, err := x.open(r, path, octets)
			require.NoError(t, err)
			require.Equal(t, slices.Concat(made, x.calls), r.took())
			require.NoError(t, b.Close())
			r.took()

			b, err = x.open(r, path, octets)
			require.NoError(t, err)
			there := slices.DeleteFunc(slices.Clone(made), func(call string) bool {
				return call == "fstatfs data"
			})
			require.Equal(t, slices.Concat(there, x.calls), r.took(), "a file that is there is long enough; the process that made it may not have synced it")
			require.NoError(t, b.Close())
			r.took()

			b, err = x.open(r, path, 2*octets)
			require.NoError(t, err)
			calls := r.took()
			grown := slices.Index(calls, "fallocate data 131072")
			require.Positive(t, grown, "one that is too short is grown, and then synced like a new one")
			require.Greater(t, slices.Index(calls, "fsync data"), grown)
			require.Greater(t, slices.Index(calls, "fsync dir"), grown)
			require.NoError(t, b.Close())
			r.took()

			b, err = x.open(r, path, 0)
			require.NoError(t, err)
			calls = r.took()
			require.Equal(t, "open data rw", calls[0], "where nothing is said of its size it is not made")
			require.Contains(t, calls, "fsync data")
			require.Contains(t, calls, "fsync dir")
			require.NotContains(t, strings.Join(calls, "\n"), "fallocate")
			require.NoError(t, b.Close())
		})
	}
}

// TestCMT_13_EveryCallThatMakesAFileMayFail: the error is the error of that call, and
// nothing stays open, locked or claimed.
func TestCMT_13_EveryCallThatMakesAFileMayFail(t *testing.T) {
	for what, x := range opens {
		for _, calls := range [][]string{slices.Concat(made, x.calls)} {
			for k, call := range calls {
				if call == "close dir" { // it was only read
					continue
				}
				t.Run(fmt.Sprintf("%s, %d %s", what, k, call), func(t *testing.T) {
					r, path := record(t)
					n := 0
					r.fail = func(string) error {
						n++
						if n == k+1 {
							return syscall.EIO
						}
						return nil
					}
					_, err := x.open(r, path, octets)
					require.ErrorIs(t, err, syscall.EIO)
					require.Equal(t, call, r.took()[k])
					require.Zero(t, r.descriptors)
					r.fails(nil)
					b, err := x.open(r, path, octets)
					require.NoError(t, err, "the next one has it")
					require.NoError(t, b.Close())
				})
			}
		}
	}
}

// once makes the first call whose text begins with call fail with err.
func once(call string, err error) func(string) error {
	return func(c string) error {
		if !strings.HasPrefix(c, call) {
			return nil
		}
		e := err
		err = nil
		return e
	}
}

func TestCMT_13_FileSystemsThatDiffer(t *testing.T) {
	r, path := record(t)
	r.fail = once("fallocate", syscall.EINTR)
	b, err := openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err, "a signal came in between")
	require.NoError(t, b.Close())

	for _, no := range []syscall.Errno{syscall.EOPNOTSUPP, syscall.ENOSYS} {
		r, path = record(t)
		r.fail = once("fallocate", no)
		b, err = openFile(r, path, &FileOptions{Size: octets})
		require.NoError(t, err, "a file system that reserves nothing")
		require.EqualValues(t, octets, b.Size())
		require.Contains(t, r.took(), "truncate data 65536")
		require.NoError(t, b.Close())
	}

	r, path = record(t)
	r.fail = once("fallocate", syscall.ENOSPC)
	_, err = openFile(r, path, &FileOptions{Size: octets})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Contains(t, r.took(), "truncate data 0", "what was reserved goes back")
	b, err = openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	r.took()
	r.fail = once("fallocate", syscall.ENOSPC)
	b, err = openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err, "there are all blocks that the file needs")
	require.NotContains(t, strings.Join(r.took(), "\n"), "truncate")
	r.fail = once("close data", syscall.EIO)
	require.ErrorIs(t, b.Close(), syscall.EIO)
	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, os.Truncate(path, octets))
	r.fail = once("fallocate", syscall.ENOSPC)
	b, err = openFile(r, path, nil)
	require.NoError(t, err, "it is not in use, although Close has failed")
	require.NoError(t, b.Close())
	_, err = openFile(r, path, &FileOptions{Size: octets})
	require.ErrorIs(t, err, syscall.ENOSPC, "it has holes")

	for _, no := range []syscall.Errno{syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.ENOLCK, syscall.EINVAL} {
		require.True(t, lockless(no))
	}
	require.False(t, lockless(syscall.EIO))

	r, path = record(t)
	r.fail = once("mmap", syscall.EOPNOTSUPP)
	_, err = mapPMem(r, path, octets)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "not on persistent memory")
	r.fail = once("mmap", syscall.EOPNOTSUPP)
	_, err = mapShared(r, path, octets)
	require.ErrorContains(t, err, "mapping")
}

// TestCMT_13_16_InterruptedFstatfs is repeated, when the file is opened and after a sync. It is not a sync itself.
func TestCMT_13_16_InterruptedFstatfs(t *testing.T) {
	r, path := record(t)
	r.fails(once("fstatfs data", unix.EINTR))
	b, err := openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err)
	_, err = b.WriteAt(make([]byte, 8), 0)
	require.NoError(t, err)
	r.took()
	r.fails(once("fstatfs data", unix.EINTR))
	require.NoError(t, b.Flush(t.Context(), 0, 8))
	require.Equal(t, []string{"fdatasync data", "fstatfs data", "fstatfs data", "stat data"}, r.took())
	require.NoError(t, b.Close())
}

// TestErrorsNameTheCall: an errno alone does not say what the system has refused.
func TestErrorsNameTheCall(t *testing.T) {
	f := os.NewFile(1<<30, "gone")
	require.NotNil(t, f)
	var sys host
	_, fstat := sys.fstat(f)
	_, fstatfs := sys.fstatfs(f)
	_, mmap := sys.mmap(f, 4096, unix.MAP_SHARED)
	for name, err := range map[string]error{
		"flock": sys.lock(f), "fstat": fstat, "fstatfs": fstatfs, "fallocate": sys.fallocate(f, 4096), "fadvise64": sys.forget(f),
		"sync_file_range": sys.syncFileRange(f, Range{0, 4096}), "mmap": mmap,
	} {
		require.ErrorIs(t, err, unix.EBADF)
		require.EqualError(t, err, name+": bad file descriptor")
	}
	for name, err := range map[string]error{"fsync": sys.fsync(f), "fdatasync": sys.fdatasync(f)} {
		require.ErrorIs(t, err, unix.EBADF)
		require.EqualError(t, err, name+" gone: bad file descriptor")
	}
	mem, err := unix.Mmap(-1, 0, 2*os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	require.EqualError(t, sys.msync(mem[1:]), "msync: invalid argument")
	require.EqualError(t, sys.munmap(mem[1:]), "munmap: invalid argument")
	require.NoError(t, sys.munmap(mem))
}
