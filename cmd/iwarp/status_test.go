package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// fails runs a command line, with and without --json, and requires its status and one line that contains want.
func fails(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	for _, more := range [][]string{nil, {"--json"}} {
		var out, errs bytes.Buffer
		require.Equal(t, status, iwarpMain(t, append(args, more...), &out, &errs), "exit status of %q: %s", args, errs.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), "one line: %q", errs.String())
		require.Contains(t, errs.String(), want, "%q", args)
		if more == nil {
			require.Empty(t, out.String(), "%q", args)
			continue
		}
		all := objects(t, out.String())
		require.NotEmpty(t, all)
		last := all[len(all)-1]
		require.Contains(t, last["error"], want)
		require.EqualValues(t, status, last["status"])
	}
}

// free returns a loopback address where nothing listens.
func free(t *testing.T) (addr, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err = net.SplitHostPort(addr)
	require.NoError(t, err)
	return addr, port
}

func TestWrongFlagsAsJSON(t *testing.T) {
	fails(t, cli.Misused, "is --size or --suite meant?", "perf", "--siute", "standard")
	fails(t, cli.Misused, "is written --suite", "perf", "-suite", "standard")
	fails(t, cli.Misused, "one of -s and -c", "ping")
}

func TestNothingListens(t *testing.T) {
	addr, port := free(t)
	fails(t, cli.Unconnected, "start the server (iwarp ping -s, or rping -s)", "ping", "127.0.0.1", "-p", port)
	fails(t, cli.Unconnected, "start the server (iwarp perf --serve)", "perf", "--connect", addr)
	fails(t, cli.Unconnected, "start the server (iwarp serve)", "get", "--addr", addr, "x")
}

// TestUnknownHost uses a name that needs no query to a server.
func TestUnknownHost(t *testing.T) {
	fails(t, cli.Unconnected, "check the name of the host", "ping", "no..host")
}

func TestWrongAddresses(t *testing.T) {
	fails(t, cli.Misused, "want host:port", "get", "--addr", "localhost", "x")
	fails(t, cli.Misused, "want host:port", "serve", "--addr", ":22x", t.TempDir())
	fails(t, cli.Misused, "--http: address 9464: missing port in address; want host:port", "serve", "--http", "9464", t.TempDir())
	fails(t, cli.Misused, "are known", "get", "--network", "ipx", "x")
	fails(t, cli.Failed, "this host has no such address", "serve", "--addr", "192.0.2.55:7471", t.TempDir())
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	for _, args := range [][]string{
		{"ping", "-s", "-a", "127.0.0.1", "-p", port},
		{"serve", "--addr", addr, t.TempDir()},
		{"perf", "--serve", "--addr", addr},
		{"serve", "--addr", "127.0.0.1:0", "--http", addr, t.TempDir()},
		{"perf", "--metrics", addr},
	} {
		fails(t, cli.Failed, "choose another port", args...)
	}
}

// foreign starts a server that does not use iWARP: it sends something, and waits.
func foreign(t *testing.T, says string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(says))
			var request [1 << 10]byte
			_, _ = c.Read(request[:])
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestPeerThatIsNoIWARP(t *testing.T) {
	for _, says := range []string{"", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "220 mail.example.com ESMTP, and at your service\r\n"} {
		port := foreign(t, says)
		fails(t, cli.Unconnected, "the peer does not speak iWARP", "ping", "127.0.0.1", "-p", port)
		fails(t, cli.Unconnected, "the peer does not speak iWARP", "get", "--addr", "127.0.0.1:"+port, "x")
		fails(t, cli.Unconnected, "iwarp perf", "perf", "--connect", "127.0.0.1:"+port)
	}
}

// TestKilledServer: a client notices that its server was killed, and says so.
func TestKilledServer(t *testing.T) {
	beIwarp(t)
	for _, asJSON := range []bool{false, true} {
		_, port := free(t)
		self, err := os.Executable()
		require.NoError(t, err)
		server := exec.CommandContext(t.Context(), self, "ping", "-s", "-a", "127.0.0.1", "-p", port)
		stdout, err := server.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, server.Start())
		line := make([]byte, 64)
		_, err = stdout.Read(line)
		require.NoError(t, err)
		require.Contains(t, string(line), "listening on")

		args := []string{"ping", "127.0.0.1", "-p", port, "--interval", "1ms"}
		if asJSON {
			args = append(args, "--json")
		}
		var errs bytes.Buffer
		out := &killer{process: server.Process}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		status := cli.Main(ctx, rootCommand(), args, cli.Streams{Out: out, Err: &errs})
		_ = server.Wait() // it was killed
		require.Equal(t, cli.Unconnected, status, errs.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		require.Contains(t, errs.String(), "the peer has ended the connection")
		if asJSON {
			all := objects(t, out.all.String())
			require.Contains(t, all[len(all)-1]["error"], "the peer has ended the connection")
		} else {
			require.Contains(t, out.all.String(), "round trip min/avg/p50/p99/max", "what was measured until then is there")
		}
	}
}

// A killer kills a process when the second ping has come back.
type killer struct {
	process *os.Process
	all     bytes.Buffer
}

func (k *killer) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "seq=1 ") || strings.Contains(string(b), `"seq":1,`) {
		_ = k.process.Kill()
	}
	return k.all.Write(b)
}

// TestTraceThatCannotBe: an existing file stays as it is.
func TestTraceThatCannotBe(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	require.NoError(t, os.WriteFile(trace, []byte("that of yesterday"), 0o600))
	for _, args := range [][]string{{"demo"}, {"put", "x"}, {"get", "x"}, {"ping", "localhost"}} {
		for _, network := range []string{"sctp", "sctp+udp"} {
			fails(t, cli.Misused, "--trace is for tcp", append(args, "--network", network, "--trace", trace)...)
		}
	}
	b, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Equal(t, "that of yesterday", string(b))
}

func TestFilesThatAreNotThere(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "where")
	fails(t, cli.Failed, "no such file", "serve", "--addr", "127.0.0.1:0", nowhere)
	fails(t, cli.Failed, "no such file", "put", "--trace", nowhere, "x")
	fails(t, cli.Failed, "no such file", "demo", "--trace", nowhere)
	fails(t, cli.Failed, "no such file", "ping", "-s", "-a", "127.0.0.1", "-p", "0", "--trace", nowhere) // before a client comes
}

// TestTraceThatFails is reported, and the file that is copied cannot be the trace.
func TestTraceThatFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	fails(t, cli.Failed, "to the file that is copied", "put", "--trace", name, name)
	fails(t, cli.Failed, "to the file that is copied", "get", "--trace", name, "y", name)
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("there is none here: ", err)
	}
	port, result := server(t, "-C", "1")
	_, err := pingClient(t, port, "-C", "1", "--trace", full)
	require.ErrorContains(t, err, "trace: write /dev/full: ")
	require.NoError(t, result())
}

// TestReportsThatCannotBeWritten are refused before anything is measured, which would take longer than a test may.
func TestReportsThatCannotBeWritten(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "where")
	fails(t, cli.Failed, "no such file", "perf", "--pairs", "1000000", "--html", nowhere)
	fails(t, cli.Failed, "no such file", "perf", "incast", "--repeats", "1000000", "--html", nowhere)
	fails(t, cli.Failed, "no such file", "perf", "incast", "--repeats", "1000000", "--svg", nowhere)
	fails(t, cli.Failed, "no such file", "perf", "rma", "--pairs", "1000000", "--svg", nowhere)
}
