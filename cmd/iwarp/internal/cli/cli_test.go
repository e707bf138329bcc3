package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing returns a program whose command work prints something, and fails with err.
func failing(prints string, err error) *cobra.Command {
	root := &cobra.Command{Use: "tool", Args: NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
	work := &cobra.Command{Use: "work", Args: NoArgs, Annotations: map[string]string{ServedBy: "tool serve"}, RunE: func(cmd *cobra.Command, _ []string) error {
		_, _ = io.WriteString(cmd.OutOrStdout(), prints)
		return err
	}}
	work.Flags().Bool("json", false, "print JSON")
	root.AddCommand(work)
	return root
}

// TestCauses: each error has its status, and one line that says what to do.
func TestCauses(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{errors.New("a\nb\r\nc"), Failed, "tool work: a; b; c"},
		{errors.New("red \x1b[31m \u009b1m"), Failed, "tool work: red \ufffd[31m \ufffd1m"},
		{UsageError("no"), Misused, "tool work: no"},
		{fmt.Errorf("x: %w", marks.ErrMissed), Failed, "tool work: x: not all targets are met"},
		{&net.DNSError{Err: "no such host", Name: "nohost"}, Unconnected, "use its address"},
		{&net.AddrError{Err: "missing port in address", Addr: "localhost"}, Misused, "want host:port"},
		{&net.DNSError{Err: "unknown port", Name: "tcp/22x"}, Misused, "want host:port"},
		{net.UnknownNetworkError("ipx"), Misused, "sctp+udp are known"},
		{syscall.ECONNREFUSED, Unconnected, "start the server (tool serve)"},
		{syscall.EHOSTUNREACH, Unconnected, "the route to it"},
		{syscall.EADDRINUSE, Failed, "choose another port"},
		{syscall.EADDRNOTAVAIL, Failed, "ip address lists"},
		{fmt.Errorf("%w: %w", transport.ErrExhausted, syscall.EADDRNOTAVAIL), Failed, "net.ipv4.ip_local_port_range"},
		{fmt.Errorf("%w: %w", transport.ErrExhausted, syscall.EAGAIN), Failed, "net.ipv4.ip_local_port_range"},
		{syscall.EACCES, Failed, "from 1024 on"},
		{syscall.EMFILE, Failed, "ulimit -n"},
		{sctpkernel.ErrNoSCTP, Failed, "modprobe sctp"},
		{iwarp.ErrRejected, Unconnected, "does not take this connection"},
		{iwarp.ErrAuth, Unconnected, "keys of both sides"},
		{timeout, Unconnected, "no answer in time"},
		{errors.Join(context.DeadlineExceeded, net.ErrClosed), Unconnected, "no answer in time"},
		{OfConnection(io.EOF), Unconnected, "tool work: EOF; the peer has ended the connection: look whether tool serve still runs there"},
		{OfConnection(fmt.Errorf("x: %w", io.ErrUnexpectedEOF)), Unconnected, "whether tool serve still runs there"},
		{OfConnection(fs.ErrNotExist), Failed, "file does not exist"},
		{&iwarp.TerminateError{Layer: 0, Type: 1, Code: 2, Remote: true}, Unconnected, "whether tool serve still runs there"},
		{&transport.Fault{Code: transport.MPAConnectionLost, Err: io.EOF}, Unconnected, "whether tool serve still runs there"},
		{syscall.ECONNRESET, Unconnected, "whether tool serve still runs there"},
		{syscall.Errno(10054), Unconnected, "whether tool serve still runs there"}, // as Windows has it
		{syscall.Errno(10061), Unconnected, "start the server (tool serve)"},
		{syscall.Errno(10048), Failed, "choose another port"},
		{fmt.Errorf("%w: nothing", ErrUnconnected), Unconnected, "tool work: no connection: nothing"},
		{fs.ErrNotExist, Failed, "file does not exist"},
	} {
		for _, asJSON := range []bool{false, true} {
			args := []string{"work"}
			if asJSON {
				args = append(args, "--json")
			}
			var out, errs bytes.Buffer
			require.Equal(t, c.status, Main(t.Context(), failing("", c.err), args, Streams{Out: &out, Err: &errs}), "%v", c.err)
			require.Contains(t, errs.String(), c.want)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
			if !asJSON {
				require.Empty(t, out.String())
				continue
			}
			var o struct {
				Error  string
				Status int
			}
			require.NoError(t, json.Unmarshal(out.Bytes(), &o))
			require.Equal(t, c.status, o.Status)
			require.Contains(t, "tool work: "+o.Error, c.want)
		}
	}
}

// TestEndOfAFileIsNoEndOfAConnection: it has another status, and no remedy that names the peer.
func TestEndOfAFileIsNoEndOfAConnection(t *testing.T) {
	for _, err := range []error{
		io.EOF,
		fmt.Errorf("file.json: %w", io.ErrUnexpectedEOF),
		&fs.PathError{Op: "write", Path: "fifo", Err: syscall.EPIPE},
		&iwarp.TerminateError{Err: fmt.Errorf("reading from the buffer: %w", io.ErrUnexpectedEOF)}, // a file that was registered
	} {
		var errs bytes.Buffer
		require.Equal(t, Failed, Main(t.Context(), failing("", err), []string{"work"}, Streams{Out: io.Discard, Err: &errs}), "%v", err)
		require.Equal(t, "tool work: "+err.Error()+"\n", errs.String())
	}
}

// TestMissedTargetsLeaveTheDocumentAlone: the output already names them.
func TestMissedTargetsLeaveTheDocumentAlone(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, Failed, Main(t.Context(), failing("{}\n", marks.ErrMissed), []string{"work", "--json"}, Streams{Out: &out, Err: io.Discard}))
	require.Equal(t, "{}\n", out.String())
	require.Equal(t, Failed, Main(t.Context(), failing("{}\n", errors.New("cut off")), []string{"work", "--json"}, Streams{Out: &out, Err: io.Discard}))
	require.Contains(t, out.String(), `{"error":"cut off","status":1}`)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	require.Equal(t, Interrupted, Main(ctx, failing("", fmt.Errorf("wait: %w", ctx.Err())), []string{"work"}, Streams{Out: io.Discard, Err: &errs}))
	require.Equal(t, "tool work: interrupted\n", errs.String())
}

// TestCtrlCOfAPage: a terminal that passes keys to the program sends no signal.
func TestCtrlCOfAPage(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, Interrupted, Main(t.Context(), failing("", fmt.Errorf("page: %w", ErrInterrupted)), []string{"work"}, Streams{Out: io.Discard, Err: &errs}))
	require.Equal(t, "tool work: interrupted\n", errs.String())
}

// TestInterruptible: an interrupted command neither returns the error of a process that was killed with it, nor waits for that process.
func TestInterruptible(t *testing.T) {
	for name, ends := range map[string]time.Duration{"at once": 0, "soon": tidyTime / 2, "never": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			root := failing("", nil)
			work, _, err := root.Find([]string{"work"})
			require.NoError(t, err)
			work.RunE = func(*cobra.Command, []string) error {
				interrupt()
				time.Sleep(ends)
				return syscall.ECONNRESET
			}
			Interruptible(work)
			var errs bytes.Buffer
			began := time.Now()
			require.Equal(t, Interrupted, Main(ctx, root, []string{"work"}, Streams{Out: io.Discard, Err: &errs}), name)
			require.Equal(t, "tool work: interrupted\n", errs.String(), name)
			require.Equal(t, min(ends, tidyTime), time.Since(began), name)
			time.Sleep(ends) // until it has ended
		})
	}
	for _, want := range []error{nil, syscall.ECONNREFUSED} {
		root := failing("", want)
		work, _, err := root.Find([]string{"work"})
		require.NoError(t, err)
		Interruptible(work)
		require.ErrorIs(t, Run(t.Context(), root, []string{"work"}, Streams{Out: io.Discard, Err: io.Discard}), want)
	}
}

func TestForms(t *testing.T) {
	for args, want := range map[string]string{
		"work -json":           "-json is written --json",
		"work -json=true":      "-json is written --json",
		"work --jsn":           "is --json meant?",
		"work -jzon":           "unknown flag -jzon: is --json meant?",
		"worg":                 `is "tool work" meant?`,
		"work more":            `unexpected argument "more"`,
		"work -- -json":        `unexpected argument "-json"`,
		"work --json=x":        "want true or false",
		"help worg":            `is "tool work" meant?`,
		"help work more":       `unknown command "more": tool work --help`,
		"completion bsh":       `is "tool completion bash" meant?`,
		"completion":           "the name of a shell is missing",
		"completion bash more": `unexpected argument "more"`,
	} {
		err := Run(t.Context(), failing("", nil), strings.Fields(args), Streams{Out: io.Discard, Err: io.Discard})
		require.ErrorAs(t, err, new(UsageError), args)
		require.ErrorContains(t, err, want, args)
	}
	require.NoError(t, Run(t.Context(), failing("", nil), nil, Streams{Out: io.Discard, Err: io.Discard}), "not the arguments of the test")
}

// A full has room for a number of writes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left == 0 {
		return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	f.left--
	return len(p), nil
}

// TestResultsThatAreLost: a command that ignores errors of its output fails, too, if there is no room for the output.
func TestResultsThatAreLost(t *testing.T) {
	for _, args := range []string{"work", "help", "help work"} {
		var errs bytes.Buffer
		require.Equal(t, Failed, Main(t.Context(), failing("result", nil), strings.Fields(args), Streams{Out: &full{}, Err: &errs}), args)
		require.Contains(t, errs.String(), "write /dev/stdout: no space left on device\n")
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		require.Equal(t, Done, Main(t.Context(), failing("result", nil), strings.Fields(args), Streams{Out: &full{left: 1 << 20}, Err: &errs}), args)
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	var out bytes.Buffer
	require.Nil(t, NewProgress(&out))
	file, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer file.Close()
	require.Nil(t, NewProgress(file))
	NewProgress(&out).Say("nothing")
	NewProgress(&out).Clear()
	require.Empty(t, out.String())

	p := &Progress{&out}
	p.Say("case %d", 1)
	p.Clear()
	require.Equal(t, "\r\x1b[Kcase 1\r\x1b[K", out.String())
}

// TestErrHasSeveralWriters: a bytes.Buffer that receives the output of a child process loses what is written to it meanwhile.
func TestErrHasSeveralWriters(t *testing.T) {
	var errs bytes.Buffer
	root := &cobra.Command{Use: "tool", RunE: func(cmd *cobra.Command, _ []string) error {
		r, child := io.Pipe()
		copied := make(chan error, 1)
		go func() {
			_, err := io.Copy(cmd.ErrOrStderr(), r)
			copied <- err
		}()
		fmt.Fprint(child, "child, ")
		fmt.Fprint(child, "again, ") // from now on its first words have been copied
		fmt.Fprint(cmd.ErrOrStderr(), "command, ")
		require.NoError(t, child.Close())
		return <-copied
	}}
	require.NoError(t, Run(t.Context(), root, nil, Streams{Err: &errs}))
	require.Contains(t, errs.String(), "child, ")
	require.Contains(t, errs.String(), "again, ")
	require.Contains(t, errs.String(), "command, ")
}

// TestCanWrite leaves everything as it was: nothing was measured, so there is no report.
func TestCanWrite(t *testing.T) {
	dir := t.TempDir()
	there, absent := filepath.Join(dir, "there"), filepath.Join(dir, "absent")
	require.NoError(t, os.WriteFile(there, []byte("the report of yesterday"), 0o600))
	require.NoError(t, CanWrite(""))
	require.NoError(t, CanWrite(there))
	require.NoError(t, CanWrite(absent))
	require.ErrorIs(t, CanWrite(filepath.Join(absent, "report")), fs.ErrNotExist)
	require.Error(t, CanWrite(dir))
	require.NoFileExists(t, absent)
	b, err := os.ReadFile(there)
	require.NoError(t, err)
	require.Equal(t, "the report of yesterday", string(b))
}
