package nvmeperf

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A listener takes connections of TCP with a congestion control.
type listener struct {
	l       *net.TCPListener
	serving sync.WaitGroup
}

// listen has each connection served, by a goroutine of its own, until close.
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

// close ends the listener, and not what was accepted.
func (s *listener) close() error { return s.l.Close() }

// wait returns when all connections have ended, and the listener.
func (s *listener) wait() { s.serving.Wait() }
