package transport

import (
	"context"
	"net"
)

// Listen listens at addr on network, which is one of the networks of [Dial]. The address of a
// "pipe" listener is any string that no other listener of the process uses. If it is empty,
// Listen chooses an address, which Addr returns.
func Listen(ctx context.Context, network, addr string, o Options) (net.Listener, error) {
	switch network {
	case pipeNetwork:
		return listenPipe(addr, o.Pipe)
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, unknownNetwork("listen", network)
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive(o.PeerTimeout)}
	lc.SetMultipathTCP(false) // see Dial
	l, err := lc.Listen(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, options: o}, nil
}

// listener applies the options to each connection. It returns the connection without a wrapper,
// so that NewStream recognizes its type.
type listener struct {
	net.Listener
	options Options
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if err := l.options.apply(c); err != nil {
		return unusable{c, err}, nil
	}
	return c, nil
}

// An unusable connection is one whose options could not be set. That is not an error of the listener, so the first Read returns it.
type unusable struct {
	net.Conn
	err error
}

func (u unusable) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "set", Net: "tcp", Source: u.LocalAddr(), Addr: u.RemoteAddr(), Err: u.err}
}
