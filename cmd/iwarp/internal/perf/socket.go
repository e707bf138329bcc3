package perf

import (
	"context"
	"net"
	"time"
)

const dialTimeout = 10 * time.Second

// dialSocket connects with the congestion control cc.
func dialSocket(addr, cc string) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: congestion(cc)}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// listenSocket listens on any port of host.
func listenSocket(host, cc string) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: congestion(cc)}
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
