package setup

import (
	"net"
	"time"
)

// A progressConn is a connection that is given up if a Read waits too long, until settled is called.
// The time between two calls of Read does not count, since it is this side's: a TLS callback may take long.
type progressConn struct {
	net.Conn
	limit time.Duration
	timer *time.Timer // runs during a Read
	done  bool        // settled was called
}

// progresses returns a connection that calls giveUp when a Read of c waits longer than limit.
func progresses(c net.Conn, limit time.Duration, giveUp func()) *progressConn {
	timer := time.AfterFunc(limit, giveUp)
	timer.Stop()
	return &progressConn{Conn: c, limit: limit, timer: timer}
}

func (c *progressConn) Read(p []byte) (int, error) {
	if !c.done {
		c.timer.Reset(c.limit)
		defer c.timer.Stop()
	}
	return c.Conn.Read(p)
}

// settled ends the supervision. Only the reading goroutine may call it.
func (c *progressConn) settled() { c.done = true }

// NetConn returns the underlying connection, like NetConn of a tls.Conn.
func (c *progressConn) NetConn() net.Conn { return c.Conn }
