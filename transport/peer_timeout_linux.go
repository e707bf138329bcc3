package transport

import (
	"math"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long data may stay unacknowledged; 0 restores the bound of the
// system, the only one that a socket of Multipath TCP supports.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	ms := max(0, min(d.Milliseconds(), math.MaxInt32))
	if d > 0 && ms == 0 {
		ms = 1
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ms))
	})
	if err != nil || unsupported(optErr) {
		return err
	}
	return os.NewSyscallError("setsockopt", optErr)
}
