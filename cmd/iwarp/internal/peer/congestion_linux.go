package peer

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultCC is available in every Linux kernel to all programs, and does not pace: a measurement
// on a loopback then shows the work, not a model of a network.
const DefaultCC = "reno"

// congestion returns a function that sets the congestion control of a socket before it
// connects or listens; connections inherit it from their listener.
func congestion(name string) func(network, address string, c syscall.RawConn) error {
	if name == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
		}); cerr != nil {
			return cerr
		}
		if err != nil {
			err = fmt.Errorf("congestion control %q: %w (sysctl net.ipv4.tcp_available_congestion_control lists those of this kernel)", name, err)
		}
		return err
	}
}
