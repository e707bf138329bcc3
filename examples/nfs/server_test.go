package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	nfsc "github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"github.com/willscott/go-nfs-client/nfs/xdr"
)

// uses does what programs do on a file system, and compares the results with the directory.
func uses(t *testing.T, v *nfsc.Target, dir string) {
	t.Helper()
	for _, n := range []int{0, 1, 3, 4000, 4096, 65537, 1<<20 - 1, 3<<20 + 5} {
		name := fmt.Sprintf("file-%d", n)
		f, err := v.OpenFile("/"+name, 0o644)
		require.NoError(t, err)
		want := octets(n)
		for part := range slices.Chunk(want, 1<<20) {
			_, err := f.Write(part)
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
		there, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, append([]byte{}, there...))
		f, err = v.Open("/" + name)
		require.NoError(t, err)
		got, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, want, append([]byte{}, got...))
		require.NoError(t, f.Close())
	}
	_, err := v.Mkdir("/many", 0o755)
	require.NoError(t, err)
	for i := range 200 {
		write(t, nil, dir, "many", fmt.Sprintf("a-file-with-a-name-%03d", i))
	}
	all, err := v.ReadDirPlus("/many")
	require.NoError(t, err)
	names := make(map[string]bool)
	for _, e := range all {
		names[e.Name()] = true
	}
	for i := range 200 {
		require.True(t, names[fmt.Sprintf("a-file-with-a-name-%03d", i)], "file %d", i)
	}
	require.NoError(t, v.Rename("/many", "/moved"))
	_, _, err = v.Lookup("/moved/a-file-with-a-name-007")
	require.NoError(t, err)
	require.NoError(t, v.Remove("/file-1"))
	_, err = os.Stat(filepath.Join(dir, "file-1"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestOverTCP serves MOUNT and NFS over TCP.
func TestOverTCP(t *testing.T) {
	dir := t.TempDir()
	s := serves(t, dir, false)
	uses(t, mounts(t, s.streams[1].Addr().String()), dir)
}

// TestOverRDMA serves the same over RDMA, with data in chunks.
func TestOverRDMA(t *testing.T) {
	dir := t.TempDir()
	s := serves(t, dir, false)
	b := newBridge(t, s.rdma.Addr().String())
	uses(t, mounts(t, b.l.Addr().String()), dir)
	require.Greater(t, b.written, 4<<20)
	require.Greater(t, b.read, 4<<20)
}

// TestRestart: the next server accepts the handles of a server that has ended.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	write(t, octets(5000), dir, "sub", "file")
	s := serves(t, dir, false)
	b := newBridge(t, s.rdma.Addr().String())
	v := mounts(t, b.l.Addr().String())
	_, handle, err := v.Lookup("/sub/file")
	require.NoError(t, err)
	s.stop()
	require.NoError(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")))
	s = serves(t, dir, false)
	v = mounts(t, s.streams[1].Addr().String())
	attr, err := v.GetAttr(handle)
	require.NoError(t, err)
	require.EqualValues(t, 5000, attr.Filesize)
}

// TestCreateTellsTheAttributes: without the attributes of the new object, a client has to ask for them.
func TestCreateTellsTheAttributes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	v := mounts(t, serves(t, dir, false).streams[0].Addr().String())
	_, sub, err := v.Lookup("/sub")
	require.NoError(t, err)
	res, err := v.Call(&struct {
		rpc.Header
		Dir   []byte
		Name  string
		How   uint32
		Attrs nfsc.Sattr3
	}{
		Header: rpc.Header{Rpcvers: 2, Prog: nfsc.Nfs3Prog, Vers: nfsc.Nfs3Vers, Proc: nfsc.NFSProc3Create, Cred: rpc.AuthNull, Verf: rpc.AuthNull},
		Dir:    sub, Name: "file", Attrs: nfsc.Sattr3{Mode: nfsc.SetMode{SetIt: true, Mode: 0o640}},
	})
	require.NoError(t, err)
	var made struct {
		Status uint32
		Handle nfsc.PostOpFH3
		Attr   nfsc.PostOpAttr
	}
	require.NoError(t, xdr.Read(res, &made))
	require.Zero(t, made.Status)
	require.True(t, made.Attr.IsSet)
	require.EqualValues(t, 0o640, made.Attr.Attr.FileMode)
}

// TestRenameOntoADirectory: an empty directory is replaced (RFC 1813 section 3.3.14), as by rename(2).
func TestRenameOntoADirectory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("os.Root renames here, which refuses it")
	}
	dir := t.TempDir()
	for _, name := range []string{"from", "empty", "full"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	write(t, octets(10), dir, "from", "file")
	write(t, octets(10), dir, "full", "file")
	v := mounts(t, serves(t, dir, false).streams[0].Addr().String())
	_, file, err := v.Lookup("/from/file")
	require.NoError(t, err)
	require.Error(t, v.Rename("/from", "/full"))
	require.NoError(t, v.Rename("/from", "/empty"))
	there, err := os.ReadFile(filepath.Join(dir, "empty", "file"))
	require.NoError(t, err)
	require.Equal(t, octets(10), there)
	_, err = v.GetAttr(file)
	require.NoError(t, err)
	require.Error(t, v.Rename("/empty/file", "/full"), "a directory is not replaced by a file")
	require.Error(t, v.Rename("/full", "/empty/file"), "nor a file by a directory")
}

// TestCreateOfAFileThatIsThere: a client that did not know of the file does not truncate it.
func TestCreateOfAFileThatIsThere(t *testing.T) {
	dir := t.TempDir()
	write(t, octets(100), dir, "file")
	v := mounts(t, serves(t, dir, false).streams[0].Addr().String())
	handle, err := v.Create("/file", 0o600)
	require.NoError(t, err)
	there, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, octets(100), there)
	attr, err := v.GetAttr(handle)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, attr.Mode().Perm())
	_, err = v.SetAttr(handle, nfsc.Sattr3{Size: nfsc.SetSize{SetIt: true}})
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

// TestReadOnly: clients change nothing.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, octets(100), dir, "file")
	s := serves(t, dir, true)
	v := mounts(t, s.streams[0].Addr().String())
	f, err := v.Open("/file")
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, octets(100), got)
	_, err = v.Create("/other", 0o644)
	require.Error(t, err)
	_, err = v.Mkdir("/dir", 0o755)
	require.Error(t, err)
	require.Error(t, v.Remove("/file"))
	require.Error(t, v.Rename("/file", "/other"))
	_, err = f.Write([]byte("x"))
	require.Error(t, err)
	there, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, octets(100), there)
}

// TestOptions: options that cannot be served are an error.
func TestOptions(t *testing.T) {
	for what, o := range map[string]options{
		"no directory":   {listen: "127.0.0.1:0", mount: "127.0.0.1:0", root: filepath.Join(t.TempDir(), "none")},
		"a bad address":  {listen: "256.0.0.1:0", mount: "127.0.0.1:0", root: t.TempDir()},
		"a bad address ": {listen: "127.0.0.1:0", mount: "256.0.0.1:0", root: t.TempDir()},
	} {
		_, err := start(t.Context(), &o)
		require.Error(t, err, what)
	}
}
