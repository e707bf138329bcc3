package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets the test program run as a server that startServer starts.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := beServer(context.Background(), os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func beServer(ctx context.Context, dir string) error {
	s, err := Listen(ctx, Link{Network: "tcp"}, "127.0.0.1:0", dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println(s.Addr())
	return s.Run(ctx)
}

// TestServerWhoseParentIsKilled: it ends by itself, because the system closes the parent's end of its standard input.
func TestServerWhoseParentIsKilled(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := startServer(ctx, t.TempDir(), Link{Network: "tcp"})
	require.NoError(t, err)
	defer s.stop()
	require.NoError(t, s.in.Close())
	require.NoError(t, s.cmd.Wait(), "its status is 0")
}

// odd is the size of most files: more than one chunk, and no multiple of anything.
const odd = chunk + 12345

// testServer serves a new directory until the test ends.
type testServer struct {
	dir, addr string
	stop      func()       // returns when everything has ended
	log       bytes.Buffer // to be read after stop
}

func startTestServer(t *testing.T) *testServer {
	t.Helper()
	ts := &testServer{dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Listen(ctx, Link{Network: "tcp"}, "127.0.0.1:0", ts.dir, slog.New(slog.NewTextHandler(&ts.log, nil)))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	ts.addr = s.Addr().String()
	ts.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err, "a server that is told to end reports no error")
		case <-time.After(10 * time.Second):
			require.Fail(t, "the server does not end")
		}
	}
	t.Cleanup(ts.stop)
	return ts
}

// client connects; the context ends with the test, and after 10 s.
func (s *testServer) client(t *testing.T) (*Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	c, err := Dial(ctx, DialOptions{Link: Link{Network: "tcp"}, Addr: s.addr})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, ctx
}

// path returns where a file of the server is.
func (s *testServer) path(name string) string { return filepath.Join(s.dir, name) }

// names lists what is in the server's directory.
func (s *testServer) names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// file makes a file of n octets and returns its name and its sum.
func file(t *testing.T, name string, n int) (path, sum string) {
	t.Helper()
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	require.NoError(t, os.WriteFile(name, b, 0o666))
	s := sha256.Sum256(b)
	return name, hex.EncodeToString(s[:])
}

func sumOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	require.NoError(t, err)
	return hex.EncodeToString(h.Sum(nil))
}
