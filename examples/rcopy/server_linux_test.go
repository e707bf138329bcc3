package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPutOntoAPipe: it fails. A server that opened the pipe would wait for its other end, and could not end meanwhile.
func TestPutOntoAPipe(t *testing.T) {
	addr, dir := serving(t)
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), []string{"put", file, addr, "pipe"}, io.Discard, io.Discard) }()
	select {
	case err := <-ended:
		require.EqualError(t, err, "the server answers command 1: invalid argument")
	case <-time.After(10 * time.Second):
		t.Error("it waits")
		r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // lets the server go on
		require.NoError(t, err)
		_ = r.Close()
		t.Log(<-ended)
	}
}

// TestStatusOfAFailure: the status is the errno, so that the client reports the reason.
func TestStatusOfAFailure(t *testing.T) {
	addr, dir := serving(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for dest, want := range map[string]syscall.Errno{
		strings.Repeat("n", 256): syscall.ENAMETOOLONG, "sub": syscall.EISDIR, "no/such": syscall.ENOENT,
	} {
		require.ErrorIs(t, run(t.Context(), []string{"put", file, addr, dest}, io.Discard, io.Discard), want)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	var out bytes.Buffer
	in := octets(t, captured.client[1:3]...)
	require.ErrorIs(t, (&session{conn: wire{bytes.NewReader(in), &out}, file: full}).run(), syscall.ENOSPC)
	h, err := readHeader(&out)
	require.NoError(t, err)
	require.EqualValues(t, syscall.ENOSPC, h.data)
	require.EqualError(t, statusError(write, h.data), "the server answers command 3: no space left on device")
}

// TestPutOfAPipe: it fails. A client that opened the pipe would wait for its other end, and ignore signals meanwhile.
func TestPutOfAPipe(t *testing.T) {
	addr, _ := serving(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), []string{"put", pipe, addr}, io.Discard, io.Discard) }()
	select {
	case err := <-ended:
		require.EqualError(t, err, pipe+" is no file")
	case <-time.After(10 * time.Second):
		t.Error("it waits")
		w, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the client go on
		require.NoError(t, err)
		t.Log(<-ended)
		require.NoError(t, w.Close())
	}
}
