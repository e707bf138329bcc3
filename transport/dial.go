package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/errtext"
)

// Options are options of the connections that Dial and Listen make. The zero value is valid.
type Options struct {
	// PeerTimeout, if positive, is set on each connection: see [SetPeerTimeout]. Otherwise each
	// connection has the keep-alive probes of package net.
	PeerTimeout time.Duration
	// Pipe describes the connections of a listener of network "pipe". Dial does not
	// use it.
	Pipe PipeOptions
}

// Dial connects to addr over network: "tcp", "tcp4" and "tcp6" as in package net,
// or "pipe" for a listener of this process. Any other network is a
// net.UnknownNetworkError. If ctx ends first the error matches that of ctx.
func Dial(ctx context.Context, network, addr string, o Options) (net.Conn, error) {
	switch network {
	case pipeNetwork:
		if err := ctx.Err(); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: err}
		}
		return dialPipe(addr)
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, unknownNetwork("dial", network)
	}
	d := net.Dialer{KeepAliveConfig: keepAlive(o.PeerTimeout)}
	d.SetMultipathTCP(false) // MPA needs the segment size of the connection; subflows may differ
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, deadlineOf(err)
	}
	if err := o.apply(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// deadlineOf makes the error of a socket's deadline, which package net takes from the context, match
// context.DeadlineExceeded. Whether net notices the deadline or the end of the context first is a matter of chance.
func deadlineOf(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errtext.Reword(errors.Join(err, context.DeadlineExceeded), err.Error())
	}
	return err
}

// apply sets the options of a new connection of package net, which has already set the keep-alive
// probes.
func (o *Options) apply(c net.Conn) error {
	if t, ok := c.(*net.TCPConn); ok && o.PeerTimeout > 0 {
		return setUserTimeout(t, o.PeerTimeout)
	}
	return nil
}

// unknownNetwork returns the error for an unknown network.
func unknownNetwork(op, network string) error {
	err := &net.OpError{Op: op, Net: network, Err: net.UnknownNetworkError(network)}
	if network == "" {
		err.Err = noNetworkError{}
	}
	return err
}

// A noNetworkError replaces the net.UnknownNetworkError of the empty network, whose text would end with a space.
type noNetworkError struct{}

func (noNetworkError) Error() string { return "the network is empty" }
func (noNetworkError) Unwrap() error { return net.UnknownNetworkError("") }
