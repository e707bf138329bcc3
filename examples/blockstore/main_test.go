package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
)

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// beProgram is the environment variable that makes this binary run as blockstore.
const beProgram = "BLOCKSTORE_TEST_PROGRAM"

// serving runs a server of sixteen blocks until the test ends.
func serving(t *testing.T) (addr, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "blocks")
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"serve", "127.0.0.1:0", path, "16"}, nil, w) }()
	_, err := fmt.Fscanf(r, "listening at %s\n", &addr)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		require.NoError(t, w.Close())
	})
	return addr, path
}

func TestBlocksAreWrittenAndRead(t *testing.T) {
	addr, path := serving(t)
	require.NoError(t, run(t.Context(), []string{"write", addr, "3"}, strings.NewReader("the third block"), nil))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"read", addr, "3"}, nil, &out))
	want := append([]byte("the third block"), make([]byte, blockSize-15)...)
	require.Equal(t, want, out.Bytes())
	disk, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, disk, 16*blockSize)
	require.Equal(t, want, disk[3*blockSize:4*blockSize])
}

func TestBlockThatIsNotThere(t *testing.T) {
	addr, _ := serving(t)
	require.ErrorIs(t, run(t.Context(), []string{"read", addr, "16"}, nil, io.Discard), iwarp.ErrBounds)
	require.ErrorIs(t, run(t.Context(), []string{"write", addr, "16"}, strings.NewReader("x"), nil), iwarp.ErrBounds)
}

func TestWrongCalls(t *testing.T) {
	for _, args := range []string{"", "read x", "read x y", "read x -1", "serve a b", "serve a b 0", "serve a b 524288", "erase a 1", "write a b 1"} {
		var wrong program.UsageError
		require.ErrorAs(t, run(t.Context(), strings.Fields(args), nil, nil), &wrong, args)
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, nil, &out))
	require.Equal(t, string(usage)+"\n", out.String())
}

// TestSIGTERM: a server that a service manager ends behaves as after Ctrl-C.
func TestSIGTERM(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be asked to end there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	server := exec.CommandContext(ctx, os.Args[0], "serve", "127.0.0.1:0", filepath.Join(t.TempDir(), "blocks"), "1")
	server.Env = append(os.Environ(), beProgram+"=1")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	var addr string
	_, err = fmt.Fscanf(out, "listening at %s\n", &addr)
	require.NoError(t, err)
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait(), "its status is 0")
}

// TestInputThatIsTooLong: an input longer than a block is written nowhere. The server need not even exist.
func TestInputThatIsTooLong(t *testing.T) {
	addr, _ := serving(t)
	whole := strings.Repeat("x", blockSize)
	require.NoError(t, run(t.Context(), []string{"write", addr, "3"}, strings.NewReader(whole), nil))
	for _, to := range []string{addr, "127.0.0.1:0"} {
		require.EqualError(t, run(t.Context(), []string{"write", to, "3"}, strings.NewReader(whole+"y"), nil), "more than 4096 octets")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"read", addr, "3"}, nil, &out))
	require.Equal(t, whole, out.String())
}
