package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hugelgupf/p9/p9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, x := range []struct {
		args []string
		want string
	}{
		{nil, "-root is missing"},
		{[]string{"-root", dir, "more"}, `unexpected argument "more"`},
		{[]string{"-root", filepath.Join(dir, "none")}, "none"},
		{[]string{"-root", file}, "is not a directory"},
		{[]string{"-root", dir, "-ro", "-tcp", ":564"}, "-ro does not work with -tcp"},
		{[]string{"-nonsense"}, "not defined"},
		{[]string{"-root", dir, "-listen", "127.0.0.1:0", "-msize", "100"}, "MaxMsize is 100"},
		{[]string{"-root", dir, "-listen", "127.0.0.1:0", "-tcp", "127.0.0.1:x"}, "unknown port"},
	} {
		require.ErrorContains(t, run(t.Context(), x.args, io.Discard, io.Discard), x.want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"--help"}, 0}, {nil, 2}, {[]string{"-nonsense"}, 2}, {[]string{"more"}, 2}, {[]string{"-root", "/none"}, 1}} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		require.Equal(t, c.want, program.Status("ninep", err, io.Discard), "%q", c.args)
	}
}

// TestServe serves both transports. The client of trans=tcp is p9's, and the client of trans=rdma only connects.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	result := make(chan error, 1)
	go func() {
		result <- run(ctx, []string{"-root", dir, "-listen", "127.0.0.1:0", "-tcp", "127.0.0.1:0", "-nocrc", "-v"}, in, io.Discard)
		in.Close()
	}()
	address := make(map[string]string)
	lines := bufio.NewScanner(out)
	for len(address) < 2 && lines.Scan() {
		f := strings.Fields(lines.Text())
		address[f[1]] = f[len(f)-1]
	}
	require.Len(t, address, 2)

	conn, err := net.Dial("tcp", address["trans=tcp"])
	require.NoError(t, err)
	defer conn.Close()
	client, err := p9.NewClient(conn)
	require.NoError(t, err)
	root, err := client.Attach("/")
	require.NoError(t, err)
	_, f, err := root.Walk([]string{"file"})
	require.NoError(t, err)
	_, _, err = f.Open(p9.ReadOnly)
	require.NoError(t, err)
	text := make([]byte, 4)
	_, err = f.ReadAt(text, 0)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	dialing, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	qp, err := rnic.Dial(dialing, "tcp", address["trans=rdma"], &iwarp.QPConfig{PD: pd, IRD: -1, ORD: -1})
	require.NoError(t, err)

	stop()
	require.NoError(t, <-result, "a stop is no error")
	<-qp.Done()
	_, err = conn.Read(text)
	require.Error(t, err, "the connection of trans=tcp has ended")
}
