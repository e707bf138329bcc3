package transport

import (
	"errors"
	"net"
	"time"
)

// SetPeerTimeout bounds how long a peer that vanished without a word goes
// unnoticed: about d after the last sign of it, with or without octets of ours on
// their way, reads and writes fail with ETIMEDOUT. Zero or less takes the bound
// away.
//
// On Linux this is TCP_USER_TIMEOUT together with keep-alive probes; the probes
// count in whole seconds, so that an idle connection needs at least two, and are
// spread over a day at most. Elsewhere it is keep-alive alone, which does not watch
// over octets on their way: the system's own retransmission limit holds there.
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
