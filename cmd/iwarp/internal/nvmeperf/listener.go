package nvmeperf

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A listener takes TCP connections with a congestion control.
type listener struct {
	l       *net.TCPListener
	serving sync.WaitGroup
}

// listen makes serve be called for each connection, in a goroutine of its own, until close.
func listen(cc string, serve func(net.Conn)) (*listener, error) {
	l, err := peer.Listen("127.0.0.1", cc)
	if err != nil {
		return nil, err
	}
	s := &listener{l: l}
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { serve(c) })
		}
	})
	return s, nil
}

func (s *listener) addr() string { return s.l.Addr().String() }

// close ends the listener, but not its connections.
func (s *listener) close() error { return s.l.Close() }

// wait returns when the listener and all its connections have ended.
func (s *listener) wait() { s.serving.Wait() }
