package dirfs_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/examples/ninep/dirfs"
)

// mount serves a new directory to a p9 client.
func mount(t *testing.T) (string, p9.File) {
	t.Helper()
	dir := t.TempDir()
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- p9.NewServer(dirfs.Attacher(dir)).Handle(far, far) }()
	client, err := p9.NewClient(near, p9.WithMessageSize(64<<10))
	require.NoError(t, err)
	root, err := client.Attach("/")
	require.NoError(t, err)
	t.Cleanup(func() {
		root.Close()
		// The server adds to a WaitGroup in a goroutine of its own: see rdma9p.DelayEnd.
		time.Sleep(20 * time.Millisecond)
		near.Close()
		if err := <-done; err != nil {
			t.Logf("server: %v", err)
		}
	})
	return dir, root
}

func walk(t *testing.T, from p9.File, names ...string) p9.File {
	t.Helper()
	_, f, err := from.Walk(names)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, path ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(path...), []byte("text"), 0o600))
}

func TestNames(t *testing.T) {
	dir, root := mount(t)
	_, err := root.Mkdir("a", 0o750, 0, p9.NoGID)
	require.NoError(t, err)
	_, err = root.Mkdir("b", 0o777, 0, p9.NoGID)
	require.NoError(t, err)
	write(t, dir, "a", "old")
	write(t, dir, "b", "new")
	a, b := walk(t, root, "a"), walk(t, root, "b")
	inside := walk(t, root, "a", "old")
	require.NoError(t, a.RenameAt("old", b, "new"), "onto an existing file of another directory")
	require.NoError(t, root.RenameAt("b", a, "c"), "a directory with open Files")
	_, _, err = inside.Open(p9.ReadOnly)
	require.NoError(t, err)
	require.NoError(t, b.Link(inside, "hard"))
	st, err := os.Stat(filepath.Join(dir, "a/c/hard"))
	require.NoError(t, err)
	require.EqualValues(t, 2, st.Sys().(*syscall.Stat_t).Nlink)
	require.ErrorIs(t, root.UnlinkAt("a", unix.AT_REMOVEDIR), linux.ENOTEMPTY)
	require.ErrorIs(t, root.UnlinkAt("none", 0), linux.ENOENT)
	require.NoError(t, b.UnlinkAt("hard", 0))
	require.NoError(t, b.UnlinkAt("new", 0))
	require.NoError(t, a.UnlinkAt("c", unix.AT_REMOVEDIR))
	_, err = root.Mknod("device", p9.ModeCharacterDevice|0o600, 1, 3, 0, 0)
	require.ErrorIs(t, err, linux.EPERM)
}

func TestAttributes(t *testing.T) {
	dir, root := mount(t)
	path := filepath.Join(dir, "file")
	write(t, path)
	f := walk(t, root, "file")
	valid := p9.SetAttrMask{
		Permissions: true, Size: true, UID: true, GID: true, ATime: true, MTime: true,
		ATimeNotSystemTime: true, MTimeNotSystemTime: true,
	}
	require.NoError(t, f.SetAttr(valid, p9.SetAttr{
		Permissions: 0o641, Size: 100, UID: p9.UID(os.Getuid()), GID: p9.GID(os.Getgid()),
		ATimeSeconds: 5, MTimeSeconds: 7, MTimeNanoSeconds: 9,
	}))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o641, st.Mode())
	require.EqualValues(t, 100, st.Size())
	require.True(t, st.ModTime().Equal(time.Unix(7, 9)))
	_, _, attr, err := f.GetAttr(p9.AttrMaskAll)
	require.NoError(t, err)
	require.EqualValues(t, 5, attr.ATimeSeconds)
	fs, err := f.StatFS()
	require.NoError(t, err)
	require.NotZero(t, fs.Blocks)
	_, _, err = f.Open(p9.ReadWrite)
	require.NoError(t, err)
	require.NoError(t, f.FSync())
}

func TestHostileNames(t *testing.T) {
	dir, root := mount(t)
	outside := t.TempDir()
	write(t, outside, "secret")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	direct, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer direct.Close()
	for _, d := range []p9.File{root, direct} {
		for _, name := range []string{"", ".", "..", "a/b", "/"} {
			_, _, err := d.Walk([]string{name})
			require.ErrorIs(t, err, linux.EINVAL, "%q", name)
			_, err = d.Mkdir(name, 0o700, 0, 0)
			require.ErrorIs(t, err, linux.EINVAL, "%q", name)
			require.ErrorIs(t, d.UnlinkAt(name, 0), linux.EINVAL, "%q", name)
		}
		_, _, err := d.Walk([]string{"link", "secret"})
		require.Error(t, err, "the link is not followed")
		target, err := walk(t, d, "link").Readlink()
		require.NoError(t, err)
		require.Equal(t, outside, target)
	}
}

func TestReaddirWhileNamesGo(t *testing.T) {
	const names = 5000
	dir, root := mount(t)
	for i := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o600))
	}
	d := walk(t, root)
	_, _, err := d.Open(p9.ReadOnly)
	require.NoError(t, err)
	seen := make(map[string]bool)
	for offset := uint64(0); ; {
		entries, err := d.Readdir(offset, 4000)
		require.NoError(t, err)
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			require.False(t, seen[e.Name], e.Name)
			seen[e.Name] = true
			require.NoError(t, root.UnlinkAt(e.Name, 0))
		}
		offset = entries[len(entries)-1].Offset
	}
	require.Len(t, seen, names)
}

// TestLocks does not use p9's client, whose Tlock has no fid.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	root, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer root.Close()
	write(t, dir, "file")
	a, b := walk(t, root, "file"), walk(t, root, "file")
	for _, f := range []p9.File{a, b} {
		_, _, err := f.Open(p9.ReadOnly)
		require.NoError(t, err)
	}
	lock := func(f p9.File, kind p9.LockType, want p9.LockStatus) {
		t.Helper()
		got, err := f.Lock(1, kind, 0, 0, 0, "host")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	lock(a, p9.WriteLock, p9.LockStatusOK)
	lock(b, p9.ReadLock, p9.LockStatusBlocked)
	lock(a, p9.Unlock, p9.LockStatusOK)
	lock(b, p9.ReadLock, p9.LockStatusOK)
	lock(a, p9.WriteLock, p9.LockStatusBlocked)
	require.NoError(t, b.Close())
	lock(a, p9.WriteLock, p9.LockStatusOK)
}

// TestLocksOfRanges: a lock that needs another right to the file leaves the locks already held, and the file as it was
// opened.
func TestLocksOfRanges(t *testing.T) {
	dir := t.TempDir()
	root, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer root.Close()
	write(t, dir, "file")
	a, b := walk(t, root, "file"), walk(t, root, "file")
	for f, mode := range map[p9.File]p9.OpenFlags{a: p9.ReadOnly, b: p9.ReadWrite} {
		_, _, err := f.Open(mode)
		require.NoError(t, err)
	}
	lock := func(f p9.File, kind p9.LockType, start uint64, want p9.LockStatus) {
		t.Helper()
		got, err := f.Lock(1, kind, 0, start, 10, "host")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	lock(a, p9.ReadLock, 0, p9.LockStatusOK)
	lock(a, p9.WriteLock, 20, p9.LockStatusOK)
	lock(b, p9.WriteLock, 0, p9.LockStatusBlocked)
	lock(b, p9.WriteLock, 20, p9.LockStatusBlocked)
	_, err = a.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, linux.EBADF, "it is open for reading")
	require.NoError(t, a.Close())
	lock(b, p9.WriteLock, 0, p9.LockStatusOK)
	require.NoError(t, b.Close())
}

// TestReaddirWithoutRoom: an entry that does not fit is not the end of the directory.
func TestReaddirWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	root, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer root.Close()
	write(t, dir, "name")
	f := walk(t, root)
	defer f.Close()
	_, _, err = f.Open(p9.ReadOnly)
	require.NoError(t, err)
	const entry = uint32(24 + len("name"))
	_, err = f.Readdir(0, entry-1)
	require.ErrorIs(t, err, linux.EINVAL)
	entries, err := f.Readdir(0, entry)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	entries, err = f.Readdir(entries[0].Offset, 1)
	require.NoError(t, err)
	require.Empty(t, entries, "this is the end")
}

func TestCreate(t *testing.T) {
	dir, root := mount(t)
	f, _, _, err := walk(t, root).Create("file", p9.ReadWrite, 0o666, p9.NoUID, p9.NoGID)
	require.NoError(t, err)
	n, err := f.WriteAt([]byte("text"), 2)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.NoError(t, f.Close())
	got, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "\x00\x00text", string(got))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	for name, want := range map[string]error{"file": nil, "pipe": linux.EEXIST, "link": linux.EEXIST} {
		f, _, _, err := walk(t, root).Create(name, p9.ReadWrite, 0o666, p9.NoUID, p9.NoGID)
		require.ErrorIs(t, err, want, name)
		if err == nil {
			require.NoError(t, f.Close())
		}
		_, _, _, err = walk(t, root).Create(name, p9.ReadWrite|unix.O_EXCL, 0o666, p9.NoUID, p9.NoGID)
		require.ErrorIs(t, err, linux.EEXIST, name)
	}
}

func TestXattrs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file")
	root, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer root.Close()
	f, path := walk(t, root, "file"), filepath.Join(dir, "file")
	if err := f.SetXattr("user.a", []byte("text"), p9.XattrCreate); err != nil {
		require.ErrorIs(t, err, linux.EOPNOTSUPP)
		t.Skip("the file system has no extended attributes")
	}
	b := make([]byte, 10)
	n, err := unix.Getxattr(path, "user.a", b)
	require.NoError(t, err)
	require.Equal(t, "text", string(b[:n]))
	require.ErrorIs(t, f.SetXattr("user.a", nil, p9.XattrCreate), linux.EEXIST)
	require.NoError(t, f.RemoveXattr("user.a"))
	require.ErrorIs(t, f.RemoveXattr("user.a"), linux.ENODATA)
}

func TestSymlink(t *testing.T) {
	dir, root := mount(t)
	_, err := root.Symlink("../../etc", "link", p9.NoUID, p9.NoGID)
	require.NoError(t, err)
	target, err := os.Readlink(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.Equal(t, "../../etc", target)
	link := walk(t, root, "link")
	require.NoError(t, root.Link(link, "second"), "a further name of the link itself")
	target, err = walk(t, root, "second").Readlink()
	require.NoError(t, err)
	require.Equal(t, "../../etc", target)
	require.ErrorIs(t, link.SetAttr(p9.SetAttrMask{Permissions: true}, p9.SetAttr{Permissions: 0o600}), linux.EOPNOTSUPP)
}

// TestErrorsOfTwoDirectories: errors of calls with two directories are the system's own, too.
func TestErrorsOfTwoDirectories(t *testing.T) {
	dir, root := mount(t)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, dir, name, "file")
	}
	a, b := walk(t, root, "a"), walk(t, root, "b")
	require.ErrorIs(t, b.Link(walk(t, a, "file"), "file"), linux.EEXIST)
	require.ErrorIs(t, root.RenameAt("a", root, "b"), linux.ENOTEMPTY)
	require.ErrorIs(t, a.RenameAt("none", b, "other"), linux.ENOENT)
}

// TestCallsDuringOpen: while a File is opened, its other calls go on.
func TestCallsDuringOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file")
	root, err := dirfs.Attacher(dir).Attach()
	require.NoError(t, err)
	defer root.Close()
	for range 20_000 {
		_, f, err := root.Walk([]string{"file"})
		require.NoError(t, err)
		var opening sync.WaitGroup
		opening.Go(func() {
			if _, _, err := f.Open(p9.ReadWrite); err != nil {
				t.Error(err)
			}
		})
		for range 4 {
			_, _, _, err := f.GetAttr(p9.AttrMaskAll)
			require.NoError(t, err)
			_, copied, err := f.Walk(nil)
			require.NoError(t, err)
			require.NoError(t, copied.Close())
		}
		opening.Wait()
		require.NoError(t, f.Close())
	}
}

func TestTimes(t *testing.T) {
	dir, root := mount(t)
	write(t, dir, "file")
	f := walk(t, root, "file")
	given := p9.SetAttrMask{ATime: true, MTime: true, ATimeNotSystemTime: true, MTimeNotSystemTime: true}
	require.NoError(t, f.SetAttr(given, p9.SetAttr{ATimeSeconds: 1 << 30, MTimeSeconds: 1 << 30, ATimeNanoSeconds: 999_999_999}))
	require.ErrorIs(t, f.SetAttr(given, p9.SetAttr{ATimeNanoSeconds: 1e9}), linux.EINVAL)
	require.ErrorIs(t, f.SetAttr(given, p9.SetAttr{MTimeNanoSeconds: 1e9}), linux.EINVAL)
	require.NoError(t, f.SetAttr(p9.SetAttrMask{MTime: true}, p9.SetAttr{}), "now")
	_, _, attr, err := f.GetAttr(p9.AttrMaskAll)
	require.NoError(t, err)
	require.EqualValues(t, 1<<30, attr.ATimeSeconds)
	require.EqualValues(t, 999_999_999, attr.ATimeNanoSeconds)
	require.WithinDuration(t, time.Now(), time.Unix(int64(attr.MTimeSeconds), int64(attr.MTimeNanoSeconds)), time.Minute)
}
