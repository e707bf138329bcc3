package peer

import (
	"context"
	"net"
	"time"
)

// Timeout is how long the set-up of a connection or of a process may take.
const Timeout = 10 * time.Second

// Dial connects to addr with the congestion control cc; empty: the system's.
func Dial(addr, cc string) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: Timeout, Control: congestion(cc)}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// Listen listens on any port of host. Its connections have the congestion control cc, too.
func Listen(host, cc string) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: congestion(cc)}
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
