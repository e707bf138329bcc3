package transfer

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// yesterday makes the file of an earlier trace.
func yesterday(t *testing.T) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "trace")
	require.NoError(t, os.WriteFile(name, []byte("that of yesterday"), 0o600))
	return name
}

// traced connects with a trace.
func (s *testServer) traced(t *testing.T, name string) (*Client, context.Context, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	trace, err := OpenTrace(name, "")
	require.NoError(t, err)
	c, err := Dial(ctx, DialOptions{Link: Link{Network: "tcp"}, Addr: s.addr, Trace: trace})
	return c, ctx, err
}

// TestTraceThatFails: the transfer is unaffected, and the error of the trace is reported at the end.
func TestTraceThatFails(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("there is none here: ", err)
	}
	s := startTestServer(t)
	c, ctx, err := s.traced(t, full)
	require.NoError(t, err)
	local, sum := file(t, filepath.Join(t.TempDir(), "local"), odd)
	_, err = c.Put(ctx, local, "name")
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, s.path("name")))
	require.ErrorContains(t, c.Close(), "trace: write /dev/full: ")
}

// TestTraceIsKeptUntilAnotherBegins: if the server does not exist, no file is emptied.
func TestTraceIsKeptUntilAnotherBegins(t *testing.T) {
	s := startTestServer(t)
	name := yesterday(t)
	none := &testServer{addr: "127.0.0.1:0"}
	_, _, err := none.traced(t, name)
	require.Error(t, err)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "that of yesterday", string(b))
	c, _, err := s.traced(t, name)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	b, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, []byte{0x4d, 0x3c, 0xb2, 0xa1}, b[:4], "of pcap")
}

// TestTraceOfTheFileItself: such a trace would empty the file to be sent.
func TestTraceOfTheFileItself(t *testing.T) {
	name := yesterday(t)
	dir := filepath.Dir(name)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Link(name, link))
	for _, copied := range []string{name, dir + "/../" + filepath.Base(dir) + "/trace", link} {
		_, err := OpenTrace(name, copied)
		require.ErrorContains(t, err, "to the file that is copied")
	}
	none, err := OpenTrace("", name)
	require.NoError(t, err)
	require.Nil(t, none)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "that of yesterday", string(b))
}
