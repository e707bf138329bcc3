package main

import (
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/willscott/go-nfs"
	"golang.org/x/sys/unix"
)

// TestPipesAreNotOpened: no call waits for the other end of a pipe.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	h := opened(t, dir)
	opens := map[string]func() error{
		"read": func() error {
			_, err := h.fs.Open("pipe")
			return err
		},
		"write": func() error {
			_, err := h.fs.OpenFile("pipe", os.O_WRONLY, 0)
			return err
		},
		"empty": func() error {
			_, err := h.fs.Create("pipe")
			return err
		},
		"list": func() error {
			_, err := h.fs.ReadDir("pipe")
			return err
		},
	}
	for what, open := range opens {
		ended := make(chan error, 1)
		go func() { ended <- open() }()
		select {
		case err := <-ended:
			require.Error(t, err, what)
		case <-within(t).Done():
			t.Error(what, "waits")
		}
	}
}

// TestFilesAreClosedAfterAFailure: until then, the space of a removed file is not free. The garbage collector closes
// none here.
func TestFilesAreClosedAfterAFailure(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dir := t.TempDir()
	write(t, octets(100), dir, "file")
	descriptors := func() (n int) {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, one := range all {
			if to, _ := os.Readlink("/proc/self/fd/" + one.Name()); to == filepath.Join(dir, "file") {
				n++
			}
		}
		return n
	}
	v := mounts(t, serves(t, dir, false).streams[0].Addr().String())
	remote, err := v.OpenFile("/file", 0o644)
	require.NoError(t, err)
	for _, on := range []int64{math.MaxInt64, 1} { // no file has that many octets, and there is no such offset
		_, err = remote.Seek(on, io.SeekCurrent)
		require.NoError(t, err)
		_, err = remote.Write(octets(10))
		require.Error(t, err)
		require.Zero(t, descriptors(), "%d octets further on", on)
	}
	h := opened(t, dir)
	for what, call := range map[string]func(file) error{
		"write":    func(f file) error { _, err := f.Write(octets(10)); return err },
		"truncate": func(f file) error { return f.Truncate(10) },
		"seek":     func(f file) error { _, err := f.Seek(-1, io.SeekStart); return err },
	} {
		f, err := h.fs.Open("file") // for reading
		require.NoError(t, err)
		require.Equal(t, 1, descriptors(), what)
		require.Error(t, call(f.(file)), what)
		require.Zero(t, descriptors(), what)
	}
}

// TestAttributesOfALink: they are its own. "cp -a" sets the times of links, and the times of the files that they lead to
// do not change.
func TestAttributesOfALink(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	write(t, octets(10), dir, "sub", "file")
	before, err := os.Stat(filepath.Join(dir, "sub", "file"))
	require.NoError(t, err)
	h := opened(t, dir)
	when := time.Unix(1_000_000_000, 5)
	for _, target := range []string{"file", "nowhere", "/etc", "../.."} {
		link := filepath.Join("sub", "link")
		require.NoError(t, h.fs.Symlink(target, link))
		require.NoError(t, h.fs.Chtimes(link, when, when), target)
		info, err := h.fs.Lstat(link)
		require.NoError(t, err)
		require.Equal(t, when, info.ModTime(), target)
		mode := uint32(0o755) // of the SYMLINK of a client whose system has rights of links, such as FreeBSD
		require.NoError(t, (&nfs.SetFileAttributes{SetMode: &mode}).Apply(h.fs, h.fs, link), target)
		require.NoError(t, h.fs.Remove(link))
	}
	after, err := os.Stat(filepath.Join(dir, "sub", "file"))
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.Equal(t, before.Mode(), after.Mode())
	for _, name := range []string{"", "sub", "sub/file"} {
		require.NoError(t, h.fs.Chtimes(name, when, when))
		info, err := h.fs.Lstat(name)
		require.NoError(t, err)
		require.Equal(t, when, info.ModTime(), name)
		require.NoError(t, h.fs.Chmod(name, 0o700), name)
	}
}

// TestFilesOfAnotherFileSystemHaveNoHandles: two files on different file systems may have the same number, and one would
// be written instead of the other.
func TestFilesOfAnotherFileSystemHaveNoHandles(t *testing.T) {
	mounted, err := os.Stat("/proc/self")
	if err != nil {
		t.Skip("nothing is mounted below /: ", err)
	}
	h := opened(t, "/")
	require.NotEqual(t, h.fs.device, deviceOf(mounted))
	for _, elems := range [][]string{{"proc"}, {"proc", "self", "status"}} {
		_, _, err := h.FromHandle(h.ToHandle(h.fs, elems))
		var stale *nfs.NFSStatusError
		require.ErrorAs(t, err, &stale, "%q", elems)
		require.Equal(t, nfs.NFSStatusStale, stale.NFSStatus)
	}
	_, err = h.fs.identify("proc")
	require.EqualError(t, err, "identify proc: it is on another file system")
	require.Equal(t, "etc", h.where(t, h.ToHandle(h.fs, []string{"etc"})))
}

// TestSearchesStayOnTheFileSystem: they skip mounts, and continue after them.
func TestSearchesStayOnTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
	for _, elems := range [][]string{{"a", "file"}, {"b"}} {
		write(t, nil, append([]string{dir}, elems...)...)
	}
	h := opened(t, dir)
	root := h.fs.device
	h.fs.device++ // as if all were on another one
	h.fs.handles.searchAll(0)
	require.Empty(t, h.fs.handles.paths)
	h.fs.device = root
	h.fs.handles.searchAll(1)
	require.Len(t, h.fs.handles.paths, 4)
}

// TestGenerations: they distinguish a file from an earlier one with its number, on file systems without birth times.
func TestGenerations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	numbers := make(map[uint64]uint64) // with the last generation
	for range 100 {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(path, &st))
		now := generation(path, st.Ino)
		require.Zero(t, generation(path, st.Ino+1), "the path is that of another file by now")
		if now == 0 {
			t.Skip("the file system has none that is known")
		}
		require.NotEqual(t, numbers[st.Ino], now)
		numbers[st.Ino] = now
		require.NoError(t, os.Remove(path))
	}
}

// asUser drops the thread's capability to open each file whatever its mode is. Its calls are then those of an
// unprivileged process.
func asUser(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	require.NoError(t, unix.Capget(&hdr, &caps[0]))
	caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	require.NoError(t, unix.Capset(&hdr, &caps[0]))
}

// TestFilesThatAreOpen: a client can write and read its open files whatever their mode is (RFC 1813 section 4.4): cp,
// tar and git make read-only files, and then write them. Other read-only files stay read-only.
func TestFilesThatAreOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, octets(20), dir, "other")
	require.NoError(t, os.Chmod(filepath.Join(dir, "other"), 0o444))
	h := opened(t, dir)
	asUser(t)
	_, err := h.fs.OpenFile("other", os.O_RDWR, 0o444)
	require.ErrorIs(t, err, fs.ErrPermission)
	for _, mode := range []os.FileMode{0o444, 0o200, 0, 0o640} {
		f, err := h.fs.Create("file")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, h.fs.Chmod("file", mode))
		f, err = h.fs.OpenFile("file", os.O_RDWR, mode)
		require.NoError(t, err, mode)
		_, err = f.Write(octets(10))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		f, err = h.fs.Open("file")
		require.NoError(t, err, mode)
		there, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, octets(10), there)
		require.NoError(t, f.Close())
		info, err := h.fs.Lstat("file")
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
		if mode&0o200 == 0 {
			h.fs.lately.files.Put(info.Sys().(*syscall.Stat_t).Ino, time.Now().Add(-latelyTime))
			_, err = h.fs.OpenFile("file", os.O_RDWR, mode)
			require.ErrorIs(t, err, fs.ErrPermission, "by now no client has it open")
		}
		require.NoError(t, h.fs.Remove("file"))
	}
	_, err = h.fs.Create("other")
	require.ErrorIs(t, err, fs.ErrPermission)
	f, err := h.fs.Create("file")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, h.fs.Chmod("file", 0))
	h.fs.readOnly = true
	_, err = h.fs.Open("file")
	require.ErrorIs(t, err, fs.ErrPermission, "nothing changes there")
}
