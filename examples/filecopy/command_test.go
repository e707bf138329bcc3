package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
	"github.com/goiwarp/iwarp/examples/internal/program"
)

// childEnv makes the test binary run as filecopy itself: demo starts its own executable.
const childEnv = "FILECOPY_TEST_BE_FILECOPY"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// beFilecopy makes children of the test run as filecopy. Without findings, their race detector would otherwise sleep for
// a second at their end.
func beFilecopy(t *testing.T) {
	t.Setenv(childEnv, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
}

// odd is the size of the files: more than one work request moves, and no multiple of anything.
const odd = 1<<20 + 12345

// filecopy runs a command line and returns what it printed.
func filecopy(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := run(ctx, args, &out, t.Output())
	return out.String(), err
}

func TestDemo(t *testing.T) {
	beFilecopy(t)
	trace := filepath.Join(t.TempDir(), "demo.pcap")
	out, err := filecopy(t, "demo", "--size", strconv.Itoa(odd), "--trace", trace)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(out, strconv.Itoa(odd)), "two results and four counters are the file's size:\n%s", out)
	_, sums, _ := strings.Cut(out, "SHA-256 before  ")
	before, after, ok := strings.Cut(sums, "\nSHA-256 after   ")
	require.True(t, ok, out)
	require.Equal(t, before, strings.TrimSpace(after), "both sums are printed")

	pcap, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Greater(t, len(pcap), 2*odd, "the trace holds what was moved, both ways")
}

func TestDemoWithoutCRC(t *testing.T) {
	beFilecopy(t)
	_, err := filecopy(t, "demo", "--size", "64KiB", "--nocrc")
	require.NoError(t, err)
}

func TestDemoOverSCTP(t *testing.T) {
	beFilecopy(t)
	for _, loss := range []string{"0", "1"} {
		out, err := filecopy(t, "demo", "--network", "sctp+udp", "--loss", loss, "--size", strconv.Itoa(odd))
		require.NoError(t, err)
		require.Equal(t, 6, strings.Count(out, strconv.Itoa(odd)), out)
	}
}

func TestPutAndGetCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	s, err := transfer.Listen(ctx, transfer.Link{Network: "tcp"}, "127.0.0.1:0", dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	addr := s.Addr().String()

	local, octets := filepath.Join(t.TempDir(), "local"), bytes.Repeat([]byte("odd"), odd)
	require.NoError(t, os.WriteFile(local, octets, 0o666))
	put, err := filecopy(t, "put", "--addr", addr, local)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "local"), "a put file has its own name unless told otherwise")

	back := filepath.Join(t.TempDir(), "back")
	got, err := filecopy(t, "get", "--addr", addr, "local", back)
	require.NoError(t, err)
	_, sum, found := strings.Cut(put, "SHA-256 ")
	require.True(t, found)
	require.Contains(t, got, "SHA-256 "+sum)
	read, err := os.ReadFile(back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(octets, read))

	_, err = filecopy(t, "get", "--addr", addr, "nothing", back)
	require.ErrorContains(t, err, "server: ")
}

func TestWrongCommandLines(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	for _, args := range [][]string{
		nil,
		{"copy"},
		{"serve"},
		{"put"},
		{"get", "a", "b", "c"},
		{"demo", "more"},
		{"demo", "--size", "-1"},
		{"demo", "--size", "1PiB"},
		{"serve", "--trace", "x", "."},
		{"put", "-x"},
		{"demo", "--network", "ipx"},
		{"serve", "--network", "ipx", "."},
		{"demo", "--loss", "1"},
		{"get", "--network", "sctp", "--loss", "1", "a"},
		{"put", "--network", "sctp+udp", "--loss", "NaN", "a"},
		{"put", "--network", "sctp+udp", "--loss", "-1", "a"},
		{"get", "--network", "sctp+udp", "--loss", "101", "a"},
		{"put", "--network", "sctp+udp", "--trace", trace, "a"},
		{"demo", "--network", "sctp+udp", "--nocrc"},
		{"get", "a", "-"},
		{"put", "-"},
	} {
		_, err := filecopy(t, args...)
		require.ErrorAs(t, err, new(program.UsageError), "%q", args)
		require.NotContains(t, err.Error(), "\n", "%q", args)
	}
	require.NoFileExists(t, trace)
	out, err := filecopy(t, "help")
	require.NoError(t, err)
	require.Equal(t, usage+"\n", out)
	out, err = filecopy(t, "demo", "-h")
	require.NoError(t, err)
	require.Contains(t, out, "256MiB", "the flags of a command are listed with their defaults")
}

func TestErrorsBeforeAnythingIsMoved(t *testing.T) {
	_, err := filecopy(t, "serve", "--addr", "127.0.0.1:0", filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = filecopy(t, "put", "--addr", "127.0.0.1:1", "x")
	require.ErrorContains(t, err, "dial", "nothing listens there")
	_, err = filecopy(t, "put", "--trace", filepath.Join(t.TempDir(), "no", "where"), "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	name := filepath.Join(t.TempDir(), "x")
	_, err = filecopy(t, "put", "--trace", name, name)
	require.ErrorContains(t, err, "to the file that is copied")
	_, err = filecopy(t, "get", "--trace", name, "y", name)
	require.ErrorContains(t, err, "to the file that is copied")
}

func TestServePrintsItsAddressAndEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0", t.TempDir()}, w, w) }()
	line := make([]byte, 64)
	n, err := r.Read(line)
	require.NoError(t, err)
	require.Regexp(t, `^127\.0\.0\.1:\d+\n$`, string(line[:n]))
	cancel()
	require.NoError(t, <-ended)
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"put", "--help"}, 0}, {nil, 2}, {[]string{"put", "-nonsense"}, 2}} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		require.Equal(t, c.want, program.Status("filecopy", err, io.Discard), "%q", c.args)
	}
}
