package transport

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// SetPeerTimeout bounds how long it goes unnoticed that a peer has vanished without
// ending the connection. About d after the last acknowledgement of the peer, whether the
// connection is idle or not, reads and writes fail with ETIMEDOUT. A peer that reads no data
// for longer than d, but acknowledges the probes of its closed window, has not vanished. Zero
// or a negative d removes the bound.
//
// An idle connection is checked by keep-alive probes. Their times are whole seconds, so that
// detection takes at least two seconds, and at most a day. A connection with unacknowledged
// data is checked as follows:
//
//   - Linux: a Stream that has a [Poller] asks the kernel (TCP_INFO) eight times within d
//     while data is unacknowledged. Before Linux 6.15 the kernel probes a closed window at
//     growing intervals, up to two minutes; a peer that vanishes then is noticed d after the
//     next probe.
//   - Linux without a Poller, which includes the build tag purego: TCP_USER_TIMEOUT. It also
//     counts the time during which the peer's window is closed, and so ends a connection
//     whose peer reads nothing for d.
//   - Elsewhere, and for a connection of Multipath TCP: the system's own limit of
//     retransmissions, in general some minutes.
//
// A system that cannot set these times for a connection, such as OpenBSD, sends keep-alive probes
// at times of its own, which may be hours apart.
//
// SetPeerTimeout applies to TCP, and to TLS over TCP. It does nothing for any other
// connection: the peer of a [Pipe] cannot vanish, and a net.Conn of another type must bound
// the time itself.
func SetPeerTimeout(c net.Conn, d time.Duration) error {
	switch c := c.(type) {
	case *net.TCPConn:
		return errors.Join(setKeepAlive(c, keepAlive(d)), setUserTimeout(c, d))
	case interface{ NetConn() net.Conn }: // a *tls.Conn
		return SetPeerTimeout(c.NetConn(), d)
	}
	return nil
}

// setKeepAlive sets the probes of a connection, or only turns them on or off if their times cannot be set.
func setKeepAlive(c *net.TCPConn, k net.KeepAliveConfig) error {
	if err := c.SetKeepAliveConfig(k); !unsupported(err) {
		return err
	}
	return c.SetKeepAlive(k.Enable)
}

// unsupported reports whether err says that a socket has no such option.
func unsupported(err error) bool {
	return sockerr.Is(err, syscall.ENOPROTOOPT) || sockerr.Is(err, syscall.EOPNOTSUPP)
}

// keepAlive divides d into whole seconds: the first third passes without probes, and probes
// fill the rest.
func keepAlive(d time.Duration) net.KeepAliveConfig {
	if d <= 0 {
		return net.KeepAliveConfig{}
	}
	d = min(d, 24*time.Hour) // Linux accepts at most 32767 s for each time
	idle := max(time.Second, (d / 3).Truncate(time.Second))
	interval := max(time.Second, (d / 6).Truncate(time.Second))
	count := max(1, int((d-idle)/interval))
	return net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: count}
}
