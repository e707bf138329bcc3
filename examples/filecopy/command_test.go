package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filecopy runs a command line and returns what it printed.
func filecopy(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	runErr := run(ctx, args, out, out)
	b, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	return string(b), runErr
}

func TestDemo(t *testing.T) {
	beFilecopy(t)
	trace := filepath.Join(t.TempDir(), "demo.pcap")
	out, err := filecopy(t, "demo", "-size", strconv.Itoa(odd), "-trace", trace)
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
	_, err := filecopy(t, "demo", "-size", "64KiB", "-nocrc")
	require.NoError(t, err)
}

func TestDemoOverSCTP(t *testing.T) {
	beFilecopy(t)
	for _, loss := range []string{"0", "1"} {
		out, err := filecopy(t, "demo", "-network", "sctp+udp", "-loss", loss, "-size", strconv.Itoa(odd))
		require.NoError(t, err)
		require.Equal(t, 6, strings.Count(out, strconv.Itoa(odd)), out)
	}
}

func TestDemoTellsCountersThatDiffer(t *testing.T) {
	var none bytes.Buffer
	r := &result{size: 1}
	err := check(&none, r, r, r.server)
	require.ErrorContains(t, err, "RDMA Write: the client counted 0 octets and the server 0, of a file of 1")
	err = check(&none, &result{sum: "a"}, &result{sum: "b"}, r.server)
	require.ErrorContains(t, err, "another one")
}

func TestPutAndGetCommands(t *testing.T) {
	s := startTestServer(t)
	dir := t.TempDir()
	local, sum := file(t, filepath.Join(dir, "local"), odd)
	out, err := filecopy(t, "put", "-addr", s.addr, local)
	require.NoError(t, err)
	require.Contains(t, out, "SHA-256 "+sum)
	require.Equal(t, []string{"local"}, s.names(t), "a put file has its own name unless told otherwise")

	back := filepath.Join(dir, "back")
	out, err = filecopy(t, "get", "-addr", s.addr, "local", back)
	require.NoError(t, err)
	require.Contains(t, out, "SHA-256 "+sum)
	require.Equal(t, sum, sumOf(t, back))

	_, err = filecopy(t, "get", "-addr", s.addr, "nothing", back)
	require.ErrorContains(t, err, "server: ")
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"copy"},
		{"serve"},
		{"put"},
		{"get", "a", "b", "c"},
		{"demo", "more"},
		{"demo", "-size", "-1"},
		{"demo", "-size", "1TiB"},
		{"serve", "-trace", "x", "."},
		{"put", "-x"},
	} {
		_, err := filecopy(t, args...)
		require.ErrorContains(t, err, "usage:", "%q", args)
	}
	out, err := filecopy(t, "help")
	require.NoError(t, err)
	require.Equal(t, usage+"\n", out)
	out, err = filecopy(t, "demo", "-h")
	require.NoError(t, err)
	require.Contains(t, out, "256MiB", "the flags of a command are listed with their defaults")
}

func TestErrorsBeforeAnythingIsMoved(t *testing.T) {
	_, err := filecopy(t, "serve", "-addr", "127.0.0.1:0", filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = filecopy(t, "put", "-addr", "127.0.0.1:1", "x")
	require.ErrorContains(t, err, "dial", "nothing listens there")
	_, err = filecopy(t, "put", "-trace", filepath.Join(t.TempDir(), "no", "where"), "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestServePrintsItsAddressAndEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", "-addr", "127.0.0.1:0", t.TempDir()}, w, w) }()
	line := make([]byte, 64)
	n, err := r.Read(line)
	require.NoError(t, err)
	require.Regexp(t, `^127\.0\.0\.1:\d+\n$`, string(line[:n]))
	cancel()
	require.NoError(t, <-ended)
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "100000": 100000, "1KiB": 1 << 10, "64MiB": 64 << 20, "5GiB": 5 << 30} {
		var s size
		require.NoError(t, s.Set(text))
		require.Equal(t, want, s)
		require.Equal(t, text, s.String())
	}
	for _, text := range []string{"", "x", "-1", "1.5MiB", "MiB", "9999999999GiB", "9223372036854775808"} {
		require.Error(t, new(size).Set(text), "%q", text)
	}
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
