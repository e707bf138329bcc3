package perf

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
)

// An rdmaService takes the connections of an iwarp driver.
type rdmaService struct {
	l     *net.TCPListener
	w     workload
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	tasks sync.WaitGroup

	mu   sync.Mutex
	ends []*rdmaEnd
}

func serveIWARP(host string, w workload) (service, error) {
	l, err := listenSocket(host, w.CC)
	if err != nil {
		return nil, err
	}
	s := &rdmaService{l: l, w: w}
	if s.rnic, s.pd, err = openRNIC(); err != nil {
		_ = l.Close() // the first error counts
		return nil, err
	}
	s.tasks.Go(s.accept)
	return s, nil
}

// openRNIC opens the RNIC of one service or driver.
func openRNIC() (*iwarp.RNIC, *iwarp.PD, error) {
	r, err := iwarp.Open(nil)
	if err != nil {
		return nil, nil, err
	}
	pd, err := r.AllocPD()
	return r, pd, err
}

// accept sets up the connections one after the other, as the driver dials them.
func (s *rdmaService) accept() {
	for range s.w.Conns + s.w.Slow + s.w.Idle {
		c, err := s.l.AcceptTCP()
		if err != nil {
			return
		}
		if s.establish(c) != nil {
			return // the driver has been told, or sees the end of the connection
		}
	}
}

func (s *rdmaService) establish(c *net.TCPConn) error {
	ctx, stop := context.WithTimeout(context.Background(), dialTimeout)
	defer stop()
	cr, err := s.rnic.Server(ctx, c, nil)
	if err != nil {
		return err
	}
	if len(cr.PrivateData()) == 0 { // a slow or an idle one, which reads at most
		_, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, MPA: s.w.mpa()})
		return err
	}
	var theirs windows
	if err := theirs.parse(cr.PrivateData()); err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	e, err := newEnd(s.rnic, s.pd, &s.w)
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	if err := e.connected(theirs); err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	if _, err = cr.Accept(ctx, e.config()); err != nil {
		return err
	}
	s.mu.Lock()
	s.ends = append(s.ends, e)
	s.mu.Unlock()
	if s.w.messages() {
		s.tasks.Go(func() { _ = e.answer() }) // ends with the QP; the driver sees why
	}
	return nil
}

func (s *rdmaService) port() int { return portOf(s.l) }

func (s *rdmaService) run(n int) error {
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	return streamAll(ends, n)
}

func (s *rdmaService) close() error {
	err := s.l.Close()
	if rerr := s.rnic.Close(); err == nil {
		err = rerr
	}
	s.tasks.Wait()
	return err
}
