package perf

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A socketService takes the connections of a driver that uses plain sockets.
type socketService struct {
	l     *net.TCPListener
	conns int                        // how many it takes
	serve func(c *net.TCPConn) error // until the end of the connection
	tasks sync.WaitGroup

	mu    sync.Mutex
	taken []*net.TCPConn
}

func serveTCP(host string, w workload) (service, error) {
	return serveSockets(host, w, func(c *net.TCPConn) error { return newTCPEnd(c, &w).serve() })
}

func serveSockets(host string, w workload, serve func(c *net.TCPConn) error) (service, error) {
	l, err := peer.Listen(host, w.CC)
	if err != nil {
		return nil, err
	}
	s := &socketService{l: l, conns: w.Conns, serve: serve}
	s.tasks.Go(s.accept)
	return s, nil
}

func (s *socketService) accept() {
	for range s.conns {
		c, err := s.l.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.taken = append(s.taken, c)
		s.mu.Unlock()
		s.tasks.Go(func() {
			_ = s.serve(c) // the client sees the end of the connection
			_ = c.Close()
		})
	}
}

func (s *socketService) port() int { return portOf(s.l) }

// run has nothing to do: an order of the tcp baseline says that it is duplex.
func (s *socketService) run(int) error { return nil }

func (s *socketService) close() error {
	err := s.l.Close()
	s.mu.Lock()
	for _, c := range s.taken {
		_ = c.Close() // perhaps closed already
	}
	s.mu.Unlock()
	s.tasks.Wait()
	return err
}
