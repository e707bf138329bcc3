package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/rsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving runs a server until the test ends.
func serving(t *testing.T) (addr, dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"serve", "-listen", "127.0.0.1:0", dir}, in, io.Discard)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	_, err := fmt.Fscanf(out, "listening at %s\n", &addr)
	require.NoError(t, err)
	return addr, dir
}

// TestPut copies files of all interesting lengths, one over the other.
func TestPut(t *testing.T) {
	addr, dir := serving(t)
	file := filepath.Join(t.TempDir(), "file")
	for _, n := range []int{1 << 22, 0, 1, 65535, 65536, 65537} {
		want := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		require.NoError(t, os.WriteFile(file, want, 0o640))
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"put", "-nocrc", file, addr, "/copy"}, &out, io.Discard))
		require.Equal(t, fmt.Sprintf("/copy: %d octets\n", n), out.String())
		got, err := os.ReadFile(filepath.Join(dir, "copy"))
		require.NoError(t, err)
		require.Equal(t, want, got, "%d octets", n)
	}
}

// TestPutFails: the server cannot make the file.
func TestPutFails(t *testing.T) {
	addr, dir := serving(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{"put", file, addr, "no/such/directory"}, io.Discard, io.Discard), "the server answers command 1")
	require.NoError(t, run(t.Context(), []string{"put", file, addr, "../../outside"}, io.Discard, io.Discard))
	_, err := os.Stat(filepath.Join(dir, "outside"))
	require.NoError(t, err, "nothing is outside")
	require.ErrorContains(t, run(t.Context(), []string{"put", dir, addr}, io.Discard, io.Discard), "is no file")
	require.Error(t, run(t.Context(), []string{"put", file + "x", addr}, io.Discard, io.Discard))
	for _, args := range [][]string{{}, {"serve"}, {"put", file}, {"get", file, addr}, {"put", "-x"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), "%q", args)
	}
	require.Error(t, run(t.Context(), []string{"serve", file + "x"}, io.Discard, io.Discard))
}

// TestAddresses: the port is optional, also after an IPv6 address.
func TestAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"host": "host:7427", "host:1": "host:1", "192.0.2.1": "192.0.2.1:7427", "::1": "[::1]:7427", "[::1]": "[::1]:7427", "[::1]:1": "[::1]:1", "fe80::1%eth0": "[fe80::1%eth0]:7427",
	} {
		require.Equal(t, want, withPort(addr))
	}
}

// TestAFileThatShrinks: the error blames the file, and not the connection.
func TestAFileThatShrinks(t *testing.T) {
	open := header{command: open | answer, length: headerSize}
	c := wire{bytes.NewReader(open.append(nil)), io.Discard}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, f.Truncate(10))
	_, err = f.Seek(5, io.SeekStart) // as if five octets were left
	require.NoError(t, err)
	_, err = put(c, f, "name")
	require.EqualError(t, err, "the file has become shorter")
}

// captured is a conversation of librdmacm's rcopy: open, write, the octets, close.
var captured = struct{ client, server []string }{
	client: []string{
		"00012000a48100000000000000000000" + "2f746d702f736d616c6c320000000000",
		"00031800000000000000000000000000" + "0600000000000000",
		"68656c6c6f0a",
		"00021000000000000000000000000000",
	},
	server: []string{"00811000000000000000000000000000", "00831000000000000000000000000000", "00821000000000000000000000000000"},
}

func octets(t *testing.T, all ...string) (b []byte) {
	t.Helper()
	for _, s := range all {
		part, err := hex.DecodeString(s)
		require.NoError(t, err)
		b = append(b, part...)
	}
	return b
}

// A wire is both directions of a stream in memory.
type wire struct {
	io.Reader
	io.Writer
}

// TestCapturedClient: the messages of librdmacm's client are answered as its server answered them.
func TestCapturedClient(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	var out bytes.Buffer
	in := octets(t, captured.client...)
	require.NoError(t, (&session{root: root, conn: wire{bytes.NewReader(in), &out}}).run())
	require.Equal(t, octets(t, captured.server...), out.Bytes())
	got, err := os.ReadFile(filepath.Join(dir, "tmp", "small2"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(got))
	for n := range in {
		out.Reset()
		err := (&session{root: root, conn: wire{bytes.NewReader(in[:n]), &out}}).run()
		whole := n == 0 || n == 32 || n == 32+24+6
		require.Equal(t, whole, err == nil, "%d octets: %v", n, err)
	}
}

// TestCapturedServer: the client sends what librdmacm's client sent.
func TestCapturedServer(t *testing.T) {
	name := filepath.Join(t.TempDir(), "small2")
	require.NoError(t, os.WriteFile(name, []byte("hello\n"), 0o644))
	require.NoError(t, os.Chmod(name, 0o644))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var out bytes.Buffer
	n, err := put(wire{bytes.NewReader(octets(t, captured.server...)), &out}, f, "/tmp/small2")
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
	require.Equal(t, octets(t, captured.client...), out.Bytes())
	for cut := range 3 * headerSize {
		_, err = f.Seek(0, io.SeekStart)
		require.NoError(t, err)
		_, err = put(wire{bytes.NewReader(octets(t, captured.server...)[:cut]), io.Discard}, f, "x")
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

// TestServerThatTakesNoMore: if the server accepts no more of a file, its answer says why, and not that it then ended
// the connection.
func TestServerThatTakesNoMore(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, rnic.Close()) }()
	l, err := rsocket.Listen(t.Context(), rnic, "pipe", "", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		for _, h := range []header{{command: open}, {command: write, data: ioError}} {
			_, failed := io.ReadFull(c, make([]byte, headerSize+8))
			h.command, h.length = h.command|answer, headerSize
			_, refused := c.Write(h.append(nil))
			err = errors.Join(err, failed, refused)
		}
		served <- errors.Join(err, c.Close())
	}()
	c, err := rsocket.Dial(t.Context(), rnic, "pipe", l.Addr().String(), nil)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(name, make([]byte, 1<<22), 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	_, err = put(c, f, "x")
	require.ErrorIs(t, err, syscall.Errno(ioError))
	require.NoError(t, <-served)
	_ = c.Close()
}

// FuzzSession sends arbitrary octets to a server.
func FuzzSession(f *testing.F) {
	b, err := hex.DecodeString(captured.client[0] + captured.client[1] + captured.client[2] + captured.client[3])
	require.NoError(f, err)
	f.Add(b)
	root, err := os.OpenRoot(f.TempDir())
	require.NoError(f, err)
	f.Cleanup(func() { _ = root.Close() })
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = (&session{root: root, conn: wire{bytes.NewReader(b), io.Discard}}).run()
	})
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"help"}, 0}, {[]string{"put", "-h"}, 0}, {nil, 2}, {[]string{"put", "-nonsense"}, 2}} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		require.Equal(t, c.want, program.Status("rcopy", err, io.Discard), "%q", c.args)
	}
}
