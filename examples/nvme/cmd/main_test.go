package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is longer than anything that succeeds takes.
const patience = 20 * time.Second

// nvme runs a command line, with input, and returns what it printed.
func nvme(t *testing.T, in []byte, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	err := run(ctx, args, &streams{in: bytes.NewReader(in), out: &out, diag: io.Discard})
	return out.Bytes(), err
}

// ok runs an nvme command that must succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	out, err := nvme(t, nil, args...)
	require.NoError(t, err, "%q: %s", args, out)
	return string(out)
}

// A server is a running nvme serve.
type server struct {
	t     testing.TB
	addr  string
	nqn   string
	in    *io.PipeWriter
	lines chan string // of out
	diag  syncBuffer
	stop  func() error
}

// serve starts a server at a port of its own, with flags, until the test ends.
func serve(t *testing.T, flags ...string) *server {
	t.Helper()
	v := &server{t: t, lines: make(chan string, 100)}
	in, toIn := io.Pipe()
	fromOut, out := io.Pipe()
	v.in = toIn
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		args := append([]string{"serve", "-listen", "127.0.0.1:0"}, flags...)
		ended <- run(ctx, args, &streams{in: in, out: out, diag: &v.diag})
		out.Close()
	}()
	go v.read(fromOut)
	v.stop = sync.OnceValue(func() error {
		cancel()
		toIn.Close()
		return <-ended
	})
	t.Cleanup(func() { require.NoError(t, v.stop()) })
	first, rest, found := strings.Cut(v.line(), ", subsystem ")
	require.True(t, found && rest != "", first)
	v.addr, v.nqn = strings.TrimPrefix(first, "listening on "), rest
	return v
}

func (v *server) read(out io.Reader) {
	defer close(v.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		v.lines <- lines.Text()
	}
}

// line returns the next line of the output.
func (v *server) line() string {
	v.t.Helper()
	select {
	case line, more := <-v.lines:
		require.True(v.t, more, "the server has ended: %v", v.diag.String())
		return line
	case <-time.After(patience):
		require.Fail(v.t, "no line")
		return ""
	}
}

// order gives an order, and returns the answer.
func (v *server) order(text string) string {
	v.t.Helper()
	_, err := io.WriteString(v.in, text+"\n")
	require.NoError(v.t, err)
	return v.line()
}

// A syncBuffer may be written and read at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// random returns n octets, the same each time.
func random(n int) []byte {
	p := make([]byte, n)
	stamp{seed: 1}.fill(p)
	return p
}
