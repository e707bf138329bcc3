package program

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// acceptPause is the time until the next try where the process had no file descriptor left.
const acceptPause = 100 * time.Millisecond

// Accept waits for a connection, also while clients use all file descriptors: that is no reason to end the connections of all.
// If ctx ends then the error is net.ErrClosed.
func Accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if !sockerr.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			return c, err
		}
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
			return nil, net.ErrClosed
		}
	}
}
