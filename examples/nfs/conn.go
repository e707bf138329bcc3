package main

import (
	"context"
	"net"
	"time"

	"github.com/willscott/go-nfs"
)

// handOver passes a connection to go-nfs.
func (s *server) handOver(c net.Conn, h nfs.Handler) {
	ctx, cancel := context.WithCancel(context.Background())
	own := &conn{Conn: c, cancel: cancel}
	own.left = time.AfterFunc(leftAfter, func() {
		cancel()
		_ = c.Close()
	})
	_ = (&nfs.Server{Handler: h, ID: s.id, Context: ctx}).Serve(&handover{conn: own}) // returns when go-nfs has the connection
}

// leftAfter is how long go-nfs may be busy with one call.
const leftAfter = 5 * time.Minute

// A conn is a connection that go-nfs serves. It closes itself when it has failed, or is no longer read: go-nfs closes neither a failed
// connection nor one whose RPC it cannot parse. go-nfs has two goroutines for each connection, and when the writing one has ended, the
// other one waits for it until the context ends.
type conn struct {
	net.Conn
	cancel context.CancelFunc
	left   *time.Timer // runs while no Read does
}

func (c *conn) Read(p []byte) (int, error) {
	c.left.Stop()
	n, err := c.Conn.Read(p)
	if err != nil {
		_ = c.Close()
	} else {
		c.left.Reset(leftAfter)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

func (c *conn) Close() error {
	c.left.Stop()
	c.cancel()
	return c.Conn.Close()
}

// A handover is a listener of one connection.
type handover struct {
	net.Listener
	conn net.Conn
}

func (h *handover) Accept() (net.Conn, error) {
	c := h.conn
	if h.conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (*handover) Close() error { return nil }
