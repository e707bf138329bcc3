package setup

import (
	"net"
	"time"
)

// A progressConn is a connection that is given up if nothing comes for a while, until
// settled is called.
type progressConn struct {
	net.Conn
	limit time.Duration
	timer *time.Timer // stopped: it does not matter any more
}

// progresses has giveUp called when c brings nothing for the time of limit.
func progresses(c net.Conn, limit time.Duration, giveUp func()) *progressConn {
	return &progressConn{Conn: c, limit: limit, timer: time.AfterFunc(limit, giveUp)}
}

func (c *progressConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.timer.Stop() {
		c.timer.Reset(c.limit)
	}
	return n, err
}

// settled ends the supervision. Only the reading goroutine may call it.
func (c *progressConn) settled() { c.timer.Stop() }

// NetConn returns what is below, as that of a tls.Conn does.
func (c *progressConn) NetConn() net.Conn { return c.Conn }
