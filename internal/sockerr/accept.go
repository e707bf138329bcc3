package sockerr

import (
	"context"
	"net"
	"time"
)

// acceptPause is the time until the next try.
const acceptPause = 100 * time.Millisecond

// Accept waits for a connection. It continues if clients use all file descriptors or all memory for sockets, or if a connection fails
// before it is accepted, because none of these may end the server. If ctx ends meanwhile, the error is net.ErrClosed.
func Accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if !passes(err) {
			return c, err
		}
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
			return nil, net.ErrClosed
		}
	}
}
