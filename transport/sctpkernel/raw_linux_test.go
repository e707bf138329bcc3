//go:build !386

package sctpkernel

import (
	"net"
	"syscall"
	"testing"
	"time"

	library "github.com/ishidawataru/sctp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A rawPeer is an association whose messages the test writes.
type rawPeer struct {
	*testing.T
	*library.SCTPConn
}

// indicating sets the adaptation indication, if it is not 0, and a limit to the waiting.
func indicating(given uint32) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			limit := unix.NsecToTimeval(int64(5 * time.Second))
			err = unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
			if err == nil && given != 0 {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_SCTP, 7, string(words(given)))
			}
		})
		if cerr != nil {
			return cerr
		}
		return err
	}
}

func rawDial(t *testing.T, to Addr, given uint32) *rawPeer {
	return rawDialStreams(t, to, given, 10, 10)
}

func rawDialStreams(t *testing.T, to Addr, given uint32, outbound, inbound uint16) *rawPeer {
	t.Helper()
	c, err := rawConnect(to, given, outbound, inbound)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SubscribeEvents(library.SCTP_EVENT_DATA_IO))
	return &rawPeer{t, c}
}

func rawConnect(to Addr, given uint32, outbound, inbound uint16) (c *library.SCTPConn, err error) {
	cfg := library.SocketConfig{
		Control: indicating(given),
		InitMsg: library.InitMsg{NumOstreams: outbound, MaxInstreams: inbound},
	}
	err = roomy(func() (err error) {
		c, err = cfg.Dial("sctp", nil, to.library())
		return err
	})
	return c, err
}

// rawListen answers as the kernel does.
func rawListen(t *testing.T, given uint32) net.Listener {
	t.Helper()
	cfg := library.SocketConfig{Control: indicating(given), InitMsg: library.InitMsg{NumOstreams: 10, MaxInstreams: 10}}
	at := Addr{}.library()
	at.IPAddrs = []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}
	var l *library.SCTPListener
	require.NoError(t, roomy(func() (err error) {
		l, err = cfg.Listen("sctp", at)
		return err
	}))
	t.Cleanup(func() { l.Close() })
	return l
}

// says sends a message, unordered.
func (c *rawPeer) says(stream uint16, ppid uint32, msg string) {
	c.Helper()
	_, err := c.SCTPWrite([]byte(msg), &library.SndRcvInfo{Stream: stream, PPID: ppid, Flags: library.SCTP_UNORDERED})
	require.NoError(c, err)
}

// hears expects a message.
func (c *rawPeer) hears(stream uint16, ppid uint32, want string) *library.SndRcvInfo {
	c.Helper()
	b := make([]byte, 1000)
	n, info, err := c.SCTPRead(b)
	require.NoError(c, err)
	require.Equal(c, want, string(b[:n]))
	require.Equal(c, stream, info.Stream)
	require.Equal(c, ppid, info.PPID)
	return info
}

// isReset expects the end of the association.
func (c *rawPeer) isReset() {
	c.Helper()
	_, _, err := c.SCTPRead(make([]byte, 100))
	require.ErrorIs(c, err, syscall.ECONNRESET)
}
