package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	nfsc "github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The client library never stops the goroutine of its cache.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/willscott/go-nfs-client/nfs.(*Target).cleanupCache"))
}

// serves starts a server of a directory.
func serves(t *testing.T, dir string, readOnly bool) *server {
	t.Helper()
	s, err := start(t.Context(), &options{listen: "127.0.0.1:0", mount: "127.0.0.1:0", tcp: "127.0.0.1:0", root: dir, readOnly: readOnly})
	require.NoError(t, err)
	t.Cleanup(s.stop)
	return s
}

// mounts connects a client of TCP to an address.
func mounts(t *testing.T, addr string) *nfsc.Target {
	t.Helper()
	c, err := rpc.DialTCP("tcp", addr, false)
	for tries := 0; errors.Is(err, syscall.EADDRINUSE) && tries < 1000; tries++ {
		c, err = rpc.DialTCP("tcp", addr, false) // it uses a random port, which may be in use
	}
	require.NoError(t, err)
	t.Cleanup(c.Close)
	m := nfsc.Mount{Client: c}
	v, err := m.Mount("/", rpc.AuthNull)
	require.NoError(t, err)
	return v
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// octets returns n octets that count up.
func octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + i/251)
	}
	return b
}

func write(t *testing.T, b []byte, elems ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(elems...), b, 0o644))
}
