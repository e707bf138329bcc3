package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/willscott/go-nfs"
)

func opened(t *testing.T, dir string) *handler {
	t.Helper()
	f, err := newFilesystem(dir, false)
	require.NoError(t, err)
	f.handles.pause = 0
	t.Cleanup(func() { _ = f.root.Close() })
	return newHandler(f)
}

// where returns the path of a handle.
func (h *handler) where(t *testing.T, handle []byte) string {
	t.Helper()
	_, elems, err := h.FromHandle(handle)
	require.NoError(t, err)
	return filepath.ToSlash(h.fs.Join(elems...))
}

// TestHandlesAreStable: over restarts and renames, here and elsewhere.
func TestHandlesAreStable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	write(t, nil, dir, "a", "b", "file")
	h := opened(t, dir)
	file := h.ToHandle(h.fs, []string{"a", "b", "file"})
	root := h.ToHandle(h.fs, nil)
	require.LessOrEqual(t, len(file), nfs.FHSize)
	require.NotEqual(t, file, root)
	require.Equal(t, file, h.ToHandle(h.fs, []string{"a", "b", "file"}))
	require.Equal(t, "a/b/file", h.where(t, file))
	require.Empty(t, h.where(t, root))

	h = opened(t, dir)
	require.Equal(t, "a/b/file", h.where(t, file), "another server")
	require.Empty(t, h.where(t, root))

	require.NoError(t, h.fs.Rename(filepath.Join("a", "b"), "c"))
	require.NoError(t, h.InvalidateHandle(h.fs, file))
	if runtime.GOOS != "linux" {
		return
	}
	searches := h.fs.handles.searches
	require.Equal(t, "c/file", h.where(t, file), "it was renamed by a client")
	require.Equal(t, searches, h.fs.handles.searches, "nothing had to be searched")
	require.NoError(t, os.Rename(filepath.Join(dir, "c"), filepath.Join(dir, "d")))
	require.Equal(t, "d/file", h.where(t, file), "it was renamed by a program of the host")
	require.Equal(t, "d/file", opened(t, dir).where(t, file))
}

// TestStaleHandles: handles of files that are gone, and handles that no server has made.
func TestStaleHandles(t *testing.T) {
	dir := t.TempDir()
	write(t, nil, dir, "file")
	h := opened(t, dir)
	file := h.ToHandle(h.fs, []string{"file"})
	other := opened(t, t.TempDir())
	require.NoError(t, os.Remove(filepath.Join(dir, "file")))
	require.NoError(t, h.InvalidateHandle(h.fs, file))
	for what, handle := range map[string][]byte{
		"removed":            file,
		"of another export":  other.ToHandle(other.fs, nil),
		"too short":          file[:20],
		"empty":              nil,
		"of no file":         h.ToHandle(h.fs, []string{"none"}),
		"of another's birth": append(file[:23:23], file[23]+1),
	} {
		_, _, err := h.FromHandle(handle)
		var stale *nfs.NFSStatusError
		require.ErrorAs(t, err, &stale, what)
		require.Equal(t, nfs.NFSStatusStale, stale.NFSStatus, what)
	}
}

// TestLinksOutside: a client makes links that lead out of the directory, and cannot follow them.
func TestLinksOutside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, []byte("secret"), outside, "file")
	h := opened(t, dir)
	if err := h.fs.Symlink(outside, "link"); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	target, err := h.fs.Readlink("link")
	require.NoError(t, err)
	require.Equal(t, outside, target)
	for _, name := range []string{"link/file", "../" + filepath.Base(outside) + "/file", "link"} {
		_, err := h.fs.Open(filepath.FromSlash(name))
		require.Error(t, err, name)
		_, err = h.fs.Stat(filepath.FromSlash(name))
		require.Error(t, err, name)
	}
	require.Error(t, h.fs.Rename(filepath.Join("link", "file"), "stolen"))
	require.Error(t, h.fs.Chmod(filepath.Join("link", "file"), 0o777))
	require.NoError(t, h.fs.Remove("link"))
}

// TestReplacedFilesAreForgotten: a client that renames one file onto another, as editors do when they save, does not
// make the server remember more files than exist.
func TestReplacedFilesAreForgotten(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a handle is that of a path here")
	}
	dir := t.TempDir()
	h := opened(t, dir)
	var replaced []byte
	for range 10 {
		write(t, nil, dir, "new")
		from := h.ToHandle(h.fs, []string{"new"})
		require.NoError(t, h.fs.Rename("new", "file"))
		require.NoError(t, h.InvalidateHandle(h.fs, from))
		require.Equal(t, "file", h.where(t, from))
		if replaced != nil {
			_, _, err := h.FromHandle(replaced)
			require.Error(t, err)
		}
		replaced = from
	}
	require.NoError(t, h.fs.Rename("file", "file"))
	require.Len(t, h.fs.handles.paths, 1)
	require.Equal(t, "file", h.where(t, replaced))
}

// TestHandlesOfFilesThatAreGone: they are stale without a search. A client that renames a file onto another makes the
// handles of other clients stale.
func TestHandlesOfFilesThatAreGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a handle is that of a path here")
	}
	dir := t.TempDir()
	h := opened(t, dir)
	for _, name := range []string{"new", "replaced", "removed", "linked"} {
		write(t, nil, dir, name)
	}
	require.NoError(t, os.Link(filepath.Join(dir, "linked"), filepath.Join(dir, "name")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o755))
	handle := make(map[string][]byte)
	for _, name := range []string{"new", "replaced", "removed", "linked", "directory"} {
		handle[name] = h.ToHandle(h.fs, []string{name})
	}
	require.NoError(t, h.fs.Rename("new", "replaced"))
	for _, name := range []string{"removed", "directory", "linked"} {
		require.NoError(t, h.fs.Remove(name))
	}
	for _, name := range []string{"replaced", "removed", "directory"} {
		_, _, err := h.FromHandle(handle[name])
		require.Error(t, err, name)
	}
	require.Equal(t, "replaced", h.where(t, handle["new"]))
	require.Zero(t, h.fs.handles.searches)
	require.Equal(t, "name", h.where(t, handle["linked"]), "it has another name")
	require.Equal(t, 1, h.fs.handles.searches)
}

// TestRenameOfAFile: it looks at no other files, of which there may be many.
func TestRenameOfAFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a handle is that of a path here")
	}
	dir := t.TempDir()
	write(t, nil, dir, "new")
	write(t, nil, dir, "old")
	h := opened(t, dir)
	from, old := h.ToHandle(h.fs, []string{"new"}), h.ToHandle(h.fs, []string{"old"})
	other := identity{number: 1}
	h.fs.handles.paths[other] = filepath.Join("new", "none")
	require.NoError(t, h.fs.Rename("new", "old"))
	require.Equal(t, filepath.Join("new", "none"), h.fs.handles.paths[other])
	require.Len(t, h.fs.handles.paths, 2)
	require.Equal(t, "old", h.where(t, from))
	_, _, err := h.FromHandle(old)
	require.Error(t, err)
}

// TestRemovedFilesAreForgotten: even if no client has removed them.
func TestRemovedFilesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	h := opened(t, dir)
	write(t, nil, dir, "stays")
	stays := h.ToHandle(h.fs, []string{"stays"})
	for i := range 1000 {
		name := strconv.Itoa(i)
		write(t, nil, dir, name)
		h.ToHandle(h.fs, []string{name})
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	require.Less(t, len(h.fs.handles.paths), 100)
	require.Equal(t, "stays", h.where(t, stays))
	require.Zero(t, h.fs.handles.searches)
}

// TestMkdirOfTwoClients: one of them makes the directory, and only that client is told so, since programs use it as a
// lock.
func TestMkdirOfTwoClients(t *testing.T) {
	h := opened(t, t.TempDir())
	require.NoError(t, h.fs.MkdirAll("lock", 0o755))
	require.ErrorIs(t, h.fs.MkdirAll("lock", 0o755), fs.ErrExist, "go-nfs has looked before the other client made it")
	require.ErrorIs(t, h.fs.MkdirAll(filepath.Join("none", "lock"), 0o755), fs.ErrNotExist)
}

// TestMount gives the whole directory.
func TestMount(t *testing.T) {
	h := opened(t, t.TempDir())
	status, _, flavors := h.Mount(t.Context(), nil, nfs.MountRequest{Dirpath: []byte("/")})
	require.Equal(t, nfs.MountStatusOk, status)
	require.Contains(t, flavors, nfs.AuthFlavorUnix, "what Linux asks for")
	status, _, _ = h.Mount(t.Context(), nil, nfs.MountRequest{Dirpath: []byte("/etc")})
	require.Equal(t, nfs.MountStatusErrNoEnt, status)
	var st nfs.FSStat
	require.NoError(t, h.FSStat(t.Context(), h.fs, &st))
}
