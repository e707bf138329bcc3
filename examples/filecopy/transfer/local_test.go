package transfer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

func TestDemoTellsCountersThatDiffer(t *testing.T) {
	var none bytes.Buffer
	r := &Result{Size: 1}
	err := (&Shown{Put: r, Got: r}).check(&none)
	require.ErrorContains(t, err, "RDMA Write: the client counted 0 octets and the server 0, of a file of 1")
	err = (&Shown{Put: &Result{Sum: "a"}, Got: &Result{Sum: "b"}}).check(&none)
	require.ErrorContains(t, err, "another one")
}

// TestFileSystemsThatSyncNoDirectory: a copy succeeds all the same.
func TestFileSystemsThatSyncNoDirectory(t *testing.T) {
	for _, no := range []syscall.Errno{syscall.EINVAL, syscall.ENOTSUP, syscall.ENOSYS} {
		require.NoError(t, unlessUnable(&os.PathError{Op: "sync", Err: no}))
	}
	require.ErrorIs(t, unlessUnable(&os.PathError{Op: "sync", Err: syscall.EIO}), syscall.EIO)
	require.NoError(t, unlessUnable(nil))
}

// TestServerThatSaysNothing: a server that accepts a connection need not speak iWARP.
func TestServerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := transport.Listen(t.Context(), "pipe", "", transport.Options{})
		require.NoError(t, err)
		began := time.Now()
		_, err = Dial(t.Context(), DialOptions{Link: Link{Network: "pipe"}, Addr: l.Addr().String()})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, setupTime, time.Since(began))
		require.NoError(t, l.Close())
	})
}

func TestProgress(t *testing.T) {
	p := newProgress(nil, "RDMA Write", 1<<20)
	p.add(1 << 19)
	p.end()
	require.Equal(t, "RDMA Write [================                ]  50 %  1 MiB/s     ", p.line(500*time.Millisecond))

	var bar bytes.Buffer
	p.w = &bar
	p.add(1 << 19)
	p.end()
	require.Equal(t, 2, strings.Count(bar.String(), "\r"))
	require.Contains(t, bar.String(), "100 %")

	f, err := os.Create(filepath.Join(t.TempDir(), "no terminal"))
	require.NoError(t, err)
	defer f.Close()
	require.Nil(t, newProgress(f, "", 1).w, "there is no bar without a terminal")
}
