package perf

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A child is a server in a process of its own.
type child struct {
	*peer.Child
	c net.Conn
}

// startChild starts this program once more, as a server on the loopback that ends with
// its one client, and connects to it.
func startChild(ctx context.Context, stderr io.Writer, args ...string) (*child, error) {
	k, err := peer.Start(ctx, stderr, append([]string{"perf", "--serve", "--addr", "127.0.0.1:0", "--once"}, args...)...)
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", k.Addr, peer.Timeout)
	if err != nil {
		return nil, errors.Join(err, k.Kill()) // it has no client with which it would end
	}
	return &child{k, c}, nil
}

// stop ends the control connection, with which the server ends, and waits for the server.
func (k *child) stop() error {
	_ = k.c.Close() // nothing is lost with it
	return k.Stop()
}
