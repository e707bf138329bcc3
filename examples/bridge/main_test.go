package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a bridge until the test ends, and returns where it listens.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, args, in, io.Discard)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	var addr string
	_, err := fmt.Fscanf(out, "listening at %s\n", &addr)
	require.NoError(t, err)
	return addr
}

// upper is a TCP server that answers in capital letters when it has received everything.
func upper(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				b, err := io.ReadAll(c)
				if err == nil {
					_, err = c.Write(bytes.ToUpper(b))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// TestThereAndBack goes from TCP to rsockets, and from rsockets to TCP.
func TestThereAndBack(t *testing.T) {
	first := start(t, "out", "127.0.0.1:0", start(t, "-nocrc", "in", "127.0.0.1:0", upper(t)))
	var all sync.WaitGroup
	for _, n := range []int{0, 1, 100, 1_000_000, 3_000_000} {
		all.Go(func() {
			c, err := net.Dial("tcp", first)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			if _, err := io.Copy(c, strings.NewReader(strings.Repeat("a", n))); err != nil {
				t.Error(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Error(err)
			}
			got, err := io.ReadAll(c)
			if err != nil || string(got) != strings.Repeat("A", n) {
				t.Errorf("%d octets of %d: %v", len(got), n, err)
			}
		})
	}
	all.Wait()
}

// TestATargetThatIsNotThere: the bridge closes the connection.
func TestATargetThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := net.Dial("tcp", start(t, "out", "127.0.0.1:0", l.Addr().String()))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err)
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"in", "x"}, {"up", "a", "b"}, {"-x"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), "%q", args)
	}
	require.Error(t, run(t.Context(), []string{"in", "nowhere", "x"}, io.Discard, io.Discard))
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"--help"}, 0}, {nil, 2}, {[]string{"-nonsense"}, 2}} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		require.Equal(t, c.want, program.Status("bridge", err, io.Discard), "%q", c.args)
	}
}
