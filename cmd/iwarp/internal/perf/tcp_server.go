package perf

import (
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A tcpService takes the connections of a tcp driver.
type tcpService struct {
	l     *net.TCPListener
	w     workload
	tasks sync.WaitGroup

	mu    sync.Mutex
	conns []*net.TCPConn
}

func serveTCP(host string, w workload) (service, error) {
	l, err := peer.Listen(host, w.CC)
	if err != nil {
		return nil, err
	}
	s := &tcpService{l: l, w: w}
	s.tasks.Go(s.accept)
	return s, nil
}

func (s *tcpService) accept() {
	for range s.w.Conns {
		c, err := s.l.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.tasks.Go(func() {
			_ = newTCPEnd(c, &s.w).serve() // the client sees the end of the connection
			_ = c.Close()
		})
	}
}

func (s *tcpService) port() int { return portOf(s.l) }

// run has nothing to do: an order says that it is duplex.
func (s *tcpService) run(int) error { return nil }

func (s *tcpService) close() error {
	err := s.l.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close() // perhaps closed already
	}
	s.mu.Unlock()
	s.tasks.Wait()
	return err
}
