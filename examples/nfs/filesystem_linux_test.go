package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/willscott/go-nfs"
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

// TestAttributesOfALink are its own: "cp -a" sets the times of links, and those of the files that they lead to stay as they are.
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
