package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport"
)

// TestConnectionThatWasLost: only an end by the peer is reported as such.
func TestConnectionThatWasLost(t *testing.T) {
	lost := func(call string, e error) error {
		return &transport.Fault{Code: transport.MPAConnectionLost, Err: &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError(call, e)}}
	}
	terminated := func(remote bool, c transport.Code) error {
		return &iwarp.TerminateError{Remote: remote, Layer: c.Layer(), Type: c.Type(), Code: c.Code()}
	}
	const ended = "the peer has ended the connection"
	for _, c := range []struct {
		err    error
		status int
		want   string // "": no remedy
	}{
		{&transport.Fault{Code: transport.MPAConnectionLost, Err: io.EOF}, Unconnected, ended},
		{lost("read", syscall.ECONNRESET), Unconnected, ended},
		{lost("sendmsg", syscall.EPIPE), Unconnected, ended},
		{lost("wsasend", syscall.Errno(10053)), Unconnected, ended}, // as Windows has it
		{lost("read", syscall.ETIMEDOUT), Unconnected, "no answer in time"},
		{lost("wsarecv", syscall.Errno(10060)), Unconnected, "no answer in time"},
		{lost("sendmsg", syscall.ENOBUFS), Failed, ""},
		{lost("recvmsg", syscall.ENOMEM), Failed, ""},
		{terminated(true, transport.DDPLocalCatastrophic), Failed, "its log says why"},
		{terminated(true, transport.RDMAPLocalCatastrophic), Failed, "its log says why"},
		{terminated(false, transport.DDPLocalCatastrophic), Failed, ""},
	} {
		f := explain(&cobra.Command{Use: "x"}, c.err)
		require.Equal(t, c.status, f.status, "%v", c.err)
		if c.want == "" {
			require.Equal(t, c.err.Error(), f.text)
			continue
		}
		require.Contains(t, f.text, c.want)
	}
}

// An unread is a pipe that nothing reads.
type unread struct{}

func (unread) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// TestInterruptibleThatIsUnread: a command that measures ends, and removes what it has made, if nothing reads its results.
func TestInterruptibleThatIsUnread(t *testing.T) {
	synctest.Test(t, testUnread)
}

func testUnread(t *testing.T) {
	root := failing("", nil)
	work, _, err := root.Find([]string{"work"})
	require.NoError(t, err)
	removed := false
	work.RunE = func(cmd *cobra.Command, _ []string) error {
		defer func() { removed = true }()
		fmt.Fprintln(cmd.OutOrStdout(), "a row")
		select {
		case <-cmd.Context().Done():
			return syscall.ECONNRESET
		case <-time.After(time.Minute):
			return errors.New("it goes on")
		}
	}
	Interruptible(work)
	var errs bytes.Buffer
	require.Equal(t, Failed, Main(t.Context(), root, []string{"work"}, Streams{Out: unread{}, Err: &errs}))
	require.Equal(t, "tool work: write /dev/stdout: broken pipe\n", errs.String())
	require.True(t, removed)
}
