package transport

import (
	"context"
	"net"
	"time"
)

// Options are options of the connections that Dial and Listen make. The zero value is valid.
type Options struct {
	// PeerTimeout, if not zero, is set on each connection: see [SetPeerTimeout].
	PeerTimeout time.Duration
	// Pipe describes the connections of a listener of network "pipe". Dial does not
	// use it.
	Pipe PipeOptions
}

// Dial connects to addr over network: "tcp", "tcp4" and "tcp6" as in package net,
// or "pipe" for a listener of this process. Any other network is a
// net.UnknownNetworkError.
func Dial(ctx context.Context, network, addr string, o Options) (net.Conn, error) {
	switch network {
	case pipeNetwork:
		if err := ctx.Err(); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: err}
		}
		return dialPipe(addr)
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	}
	var d net.Dialer
	d.SetMultipathTCP(false) // MPA needs the segment size of the connection; subflows may differ
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := o.apply(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// apply sets the options of a new connection.
func (o *Options) apply(c net.Conn) error {
	if o.PeerTimeout == 0 {
		return nil
	}
	return SetPeerTimeout(c, o.PeerTimeout)
}
