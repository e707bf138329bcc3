package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// succeeds runs a command line and returns what it has printed.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, iwarpMain(t, args, &out, &errs), "%q: %s", args, errs.String())
	return out.String()
}

func TestVersion(t *testing.T) {
	require.True(t, strings.HasPrefix(succeeds(t, "version"), "iwarp "))
	require.Contains(t, succeeds(t, "--version"), "iwarp version ")
	v := objects(t, succeeds(t, "version", "--json"))
	require.Len(t, v, 1)
	require.NotEmpty(t, v[0]["version"])
	require.Contains(t, v[0]["go"], "go1.")
}

func TestStamp(t *testing.T) {
	b := &debug.BuildInfo{Main: debug.Module{Version: "v0.3.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "1234abcd"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	s := stampOf(stamp{}, b)
	require.Equal(t, "v0.3.0", s.Version, "that of the module")
	require.Contains(t, s.String(), "\ncommit 1234abcd of 2026-01-02T03:04:05Z, with changes")
	require.Equal(t, "(devel)", stampOf(stamp{}, nil).Version)
	s = stampOf(stamp{Version: "v0.4.0", Commit: "5678", Time: "2026-05-06T07:08:09Z"}, b)
	require.True(t, strings.HasPrefix(s.String(), "iwarp v0.4.0 go"), "what the linker says goes first")
	require.True(t, strings.HasSuffix(s.String(), "\ncommit 5678 of 2026-05-06T07:08:09Z"))
}

func TestInfoOfTheMachine(t *testing.T) {
	out := succeeds(t, "info")
	for _, want := range []string{"processor\n", "transports\n", "CRC32c", "sctp+udp"} {
		require.Contains(t, out, want)
	}
	all := objects(t, succeeds(t, "info", "--json"))
	require.Len(t, all, 1)
	require.NotEmpty(t, all[0]["facts"])
}

// TestManualPages: there is one for each command, and the same each time.
func TestManualPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := filepath.Join(t.TempDir(), "share", "man", "man1")
	succeeds(t, "man", dir)
	for _, name := range []string{"iwarp.1", "iwarp-ping.1", "iwarp-top.1", "iwarp-perf.1", "iwarp-perf-commit.1", "iwarp-demo.1", "iwarp-completion.1"} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(page), "Nov 2023")
	}
	page, err := os.ReadFile(filepath.Join(dir, "iwarp.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), "called wrongly", "the exit status is in the manual")
}

func TestDemo(t *testing.T) {
	beIwarp(t)
	out := succeeds(t, "demo", "--size", "1MiB")
	require.Contains(t, out, "SHA-256 after")
	require.Empty(t, succeeds(t, "demo", "--size", "1KiB", "-q", "--network", "sctp+udp"))
	all := objects(t, succeeds(t, "demo", "--size", "1KiB", "--json", "--nocrc"))
	require.Len(t, all, 1)
	require.EqualValues(t, 1024, all[0]["get"].(map[string]any)["octets"])
}

func TestPerf(t *testing.T) {
	beIwarp(t)
	out := succeeds(t, "perf", "--op", "write", "--size", "4K", "--pairs", "1", "--span", "2ms", "--json")
	require.Equal(t, "write_4K", objects(t, out)[0]["case"])
}

// TestPerfServer: it prints where it listens, as JSON if it is told to.
func TestPerfServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- cli.Run(ctx, rootCommand(), []string{"perf", "--serve", "--addr", "127.0.0.1:0", "--json"}, cli.Streams{Out: w, Err: io.Discard})
	}()
	line := make([]byte, 128)
	n, err := r.Read(line)
	require.NoError(t, err)
	require.Contains(t, objects(t, string(line[:n]))[0]["addr"], "127.0.0.1:")
	cancel()
	require.NoError(t, <-done)
}

// TestServeShowsItsConnections at an address on the loopback, to browsers and to Prometheus.
func TestServeShowsItsConnections(t *testing.T) {
	for _, flags := range [][]string{nil, {"--json"}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			args := append([]string{"serve", "--addr", "127.0.0.1:0", "--http", ":0", t.TempDir()}, flags...)
			done <- cli.Run(ctx, rootCommand(), args, cli.Streams{Out: w, Err: io.Discard})
		}()
		line := make([]byte, 256)
		n, err := r.Read(line)
		require.NoError(t, err)
		var url string
		if flags == nil {
			lines := strings.Split(string(line[:n]), "\n")
			require.Len(t, lines, 3, "two, and the end of the second")
			url = lines[1]
		} else {
			url = objects(t, string(line[:n]))[0]["http"].(string)
		}
		require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, url)
		for path, want := range map[string]string{"": "page.js", "state.json": `"setups_pending":0`, "metrics": "iwarp_setups_pending"} {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			require.NoError(t, err)
			q.Close = true
			a, err := http.DefaultClient.Do(q)
			require.NoError(t, err)
			b, err := io.ReadAll(a.Body)
			require.NoError(t, err)
			require.NoError(t, a.Body.Close())
			require.Contains(t, string(b), want)
		}
		cancel()
		require.NoError(t, <-done)
	}
}

// TestPutAndGet copies a file to a server and back.
func TestPutAndGet(t *testing.T) {
	dir, local := t.TempDir(), filepath.Join(t.TempDir(), "local")
	require.NoError(t, os.WriteFile(local, []byte("some octets"), 0o666))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- cli.Run(ctx, rootCommand(), []string{"serve", "--addr", "127.0.0.1:0", "--json", dir}, cli.Streams{Out: w, Err: io.Discard})
	}()
	line := make([]byte, 128)
	n, err := r.Read(line)
	require.NoError(t, err)
	addr := objects(t, string(line[:n]))[0]["addr"].(string)

	require.Contains(t, succeeds(t, "put", "--addr", addr, local), "SHA-256 ")
	back := local + ".back"
	got := objects(t, succeeds(t, "get", "--addr", addr, "--json", "local", back))
	require.EqualValues(t, 11, got[0]["octets"])
	b, err := os.ReadFile(back)
	require.NoError(t, err)
	require.Equal(t, "some octets", string(b))
	fails(t, cli.Failed, "server: ", "get", "--addr", addr, "nothing", back)

	cancel()
	require.NoError(t, <-done, "an interrupt ends the server")
}
