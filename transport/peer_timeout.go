package transport

import (
	"errors"
	"net"
	"time"
)

// SetPeerTimeout bounds how long a peer that vanished without a word goes
// unnoticed: about d after the last sign of it, with or without octets of ours on
// their way, reads and writes fail with ETIMEDOUT. A sign is any acknowledgement: a peer
// that takes no octets for longer than d, and acknowledges the probes of its closed window,
// is there. Zero or less takes the bound away.
//
// An idle connection is watched over by keep-alive probes. They count in whole seconds, so
// that it takes at least two, and are spread over a day at most. For octets on their way
// the means are these:
//
//   - Linux: a Stream that has a [Poller] asks the kernel (TCP_INFO) eight times in d while
//     something that was written is not acknowledged. Before Linux 6.15 the kernel probes a
//     closed window less and less often, every two minutes in the end, and a peer that
//     vanishes then is noticed d after the next probe.
//   - Linux without a Poller, which includes the build tag purego: TCP_USER_TIMEOUT. It
//     counts the time for which the peer's window is closed too, and so ends a connection
//     whose peer takes nothing for d.
//   - Elsewhere: the system's own limit of retransmissions, minutes in general.
//
// It applies to TCP, and to TLS over it. Any other connection is left as it is: the
// peer of a [Pipe] cannot vanish, and what else a user brings bounds itself.
func SetPeerTimeout(c net.Conn, d time.Duration) error {
	switch c := c.(type) {
	case *net.TCPConn:
		return errors.Join(c.SetKeepAliveConfig(keepAlive(d)), setUserTimeout(c, d))
	case interface{ NetConn() net.Conn }: // a *tls.Conn
		return SetPeerTimeout(c.NetConn(), d)
	}
	return nil
}

// keepAlive shares d out: probes begin after a third of it, and the rest is filled
// with probes, all in whole seconds.
func keepAlive(d time.Duration) net.KeepAliveConfig {
	if d <= 0 {
		return net.KeepAliveConfig{}
	}
	d = min(d, 24*time.Hour) // Linux takes no more than 32767 s for each time
	idle := max(time.Second, (d / 3).Truncate(time.Second))
	interval := max(time.Second, (d / 6).Truncate(time.Second))
	count := max(1, int((d-idle)/interval))
	return net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: count}
}
