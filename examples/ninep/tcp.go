package main

import (
	"context"
	"net"

	"github.com/hugelgupf/p9/p9"
)

// serveTCP serves clients of trans=tcp until ctx ends.
func serveTCP(ctx context.Context, l net.Listener, server *p9.Server) error {
	return server.ServeContext(ctx, &closingListener{Listener: l, ctx: ctx})
}

// A closingListener closes its connections when its context ends, since the server of p9 waits for their ends.
type closingListener struct {
	net.Listener
	ctx context.Context
}

func (l *closingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &closingConn{Conn: c, stop: context.AfterFunc(l.ctx, func() { _ = c.Close() })}, nil
}

// A closingConn forgets about the context when it is closed.
type closingConn struct {
	net.Conn
	stop func() bool
}

func (c *closingConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
