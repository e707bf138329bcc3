package cli

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport"
)

// TestConnectionThatWasLost: only what the peer has done is told as that.
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
		{lost("read", syscall.ETIMEDOUT), Unconnected, "no answer in time"},
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
