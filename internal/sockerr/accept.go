package sockerr

import (
	"context"
	"net"
	"time"
)

// acceptPause is the time until the next try.
const acceptPause = 100 * time.Millisecond

// Accept waits for a connection, also while clients use all file descriptors, or the memory for sockets, and where a connection has failed
// before it was taken: that is no reason to end the connections of all. If ctx ends then the error is net.ErrClosed.
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
