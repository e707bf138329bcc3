package transport

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
)

// TestAcceptedConnectionWithoutItsOptions is given to the caller, and its first Read says why it is unusable. If it were only closed,
// a listener on a system that refuses the option would take no connection, and nothing would say why.
func TestAcceptedConnectionWithoutItsOptions(t *testing.T) {
	if runtime.GOARCH == "386" || runtime.GOARCH == "s390x" {
		t.Skip("there the options are set by another system call")
	}
	l, err := Listen(t.Context(), "tcp", "127.0.0.1:0", Options{PeerTimeout: time.Minute})
	require.NoError(t, err)
	defer l.Close()
	peer, err := Dial(t.Context(), "tcp", l.Addr().String(), Options{})
	require.NoError(t, err)
	defer peer.Close()
	_, err = peer.Write([]byte("text"))
	require.NoError(t, err)
	err = sysfail.Run(t, unix.EPERM, func() error {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 4))
		return err
	}, unix.SYS_SETSOCKOPT)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "set tcp "+l.Addr().String()+"->"+peer.LocalAddr().String()+": setsockopt: operation not permitted")
}
