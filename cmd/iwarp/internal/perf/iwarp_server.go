package perf

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// An rdmaService takes the connections of an iwarp driver.
type rdmaService struct {
	l     rdmaListener
	w     workload
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	tasks sync.WaitGroup

	mu   sync.Mutex
	ends []*rdmaEnd
}

// A rdmaListener takes connections, up to the point where the application has to answer them.
type rdmaListener interface {
	accept(ctx context.Context) (*iwarp.ConnRequest, error)
	port() int
	Close() error
}

func serveIWARP(host string, w workload) (service, error) {
	s := &rdmaService{w: w}
	var err error
	if s.rnic, s.pd, err = openRNIC(); err != nil {
		return nil, err
	}
	if s.l, err = s.listen(host); err != nil {
		_ = exported.Close(s.rnic) // the first error counts
		return nil, err
	}
	s.tasks.Go(s.accept)
	return s, nil
}

func (s *rdmaService) listen(host string) (rdmaListener, error) {
	lc := new(iwarp.ListenConfig)
	if err := authmode.Respond(s.w.Auth, lc); err != nil {
		return nil, err
	}
	if s.w.Network != "" {
		ctx, stop := context.WithTimeout(context.Background(), peer.Timeout)
		defer stop()
		l, err := s.rnic.Listen(ctx, s.w.Network, net.JoinHostPort(host, "0"), lc)
		return &sessionListener{l}, err
	}
	l, err := peer.Listen(host, s.w.CC)
	return &socketListener{l, s.rnic, lc}, err
}

// A socketListener sets up the connections of TCP with the congestion control of the
// workload.
type socketListener struct {
	*net.TCPListener
	rnic *iwarp.RNIC
	lc   *iwarp.ListenConfig
}

func (l *socketListener) port() int { return portOf(l) }

func (l *socketListener) accept(ctx context.Context) (*iwarp.ConnRequest, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	return l.rnic.Server(ctx, c, l.lc)
}

// A sessionListener sets up the connections of another network.
type sessionListener struct{ *iwarp.Listener }

func (l *sessionListener) port() int {
	_, port, _ := net.SplitHostPort(l.Addr().String()) // the address is valid
	n, _ := strconv.Atoi(port)
	return n
}

func (l *sessionListener) accept(ctx context.Context) (*iwarp.ConnRequest, error) {
	return l.Accept(ctx)
}

// exported are the RNICs of this process, for --metrics.
var exported = exporter.NewSet()

// openRNIC opens the RNIC of one service or driver. exported closes it.
func openRNIC() (*iwarp.RNIC, *iwarp.PD, error) {
	r, err := iwarp.Open(nil)
	if err != nil {
		return nil, nil, err
	}
	exported.Add(r)
	pd, err := r.AllocPD()
	return r, pd, err
}

// accept sets up the connections one after the other, as the driver dials them.
func (s *rdmaService) accept() {
	for range s.w.Conns + s.w.Slow + s.w.Idle {
		cr, err := s.l.accept(context.Background())
		if err != nil {
			return
		}
		if s.establish(cr) != nil {
			return // the driver was told, or sees the end of the connection
		}
	}
}

func (s *rdmaService) establish(cr *iwarp.ConnRequest) error {
	ctx, stop := context.WithTimeout(context.Background(), peer.Timeout)
	defer stop()
	if len(cr.PrivateData()) == 0 { // a slow or an idle connection, which does nothing but read
		_, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, MPA: s.w.mpa()})
		return err
	}
	if s.w.isCall() {
		return s.establishCall(ctx, cr)
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

func (s *rdmaService) port() int { return s.l.port() }

var errNoHalf = errors.New("the workload is not duplex: all of it is the client's")

// run is for a workload without messages: otherwise the goroutines that answer messages take the completions of the CQ.
func (s *rdmaService) run(n int) error {
	if !s.w.Duplex {
		return errNoHalf
	}
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	return streamAll(ends, n)
}

func (s *rdmaService) close() error {
	err := s.l.Close()
	if rerr := exported.Close(s.rnic); err == nil {
		err = rerr
	}
	s.tasks.Wait()
	return err
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
