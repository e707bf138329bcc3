package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPutOntoAPipe fails: a server that opened it would wait for its other end, and could not end meanwhile.
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
		require.ErrorContains(t, err, "the server answers command 1")
	case <-time.After(10 * time.Second):
		t.Error("it waits")
		r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // for the server to go on
		require.NoError(t, err)
		_ = r.Close()
		t.Log(<-ended)
	}
}

// TestPutOfAPipe fails: a client that opened it would wait for its other end, and take no notice of signals meanwhile.
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
		w, err := os.OpenFile(pipe, os.O_RDWR, 0) // for the client to go on
		require.NoError(t, err)
		t.Log(<-ended)
		require.NoError(t, w.Close())
	}
}
