package rmaperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// What a service offers.
const (
	kindRMA   = "rma"   // regions
	kindPlain = "plain" // memory for RDMA Reads
	kindTLS   = "tls"   // a stream of octets over TLS 1.3
)

// A service describes a service that the server process is to open.
type service struct {
	Kind   string `json:"kind"`
	CRC    bool   `json:"crc,omitempty"`    // of rma and plain
	Sealed bool   `json:"sealed,omitempty"` // of rma: suite 1, else 0
	MaxOp  int    `json:"maxop,omitempty"`  // of rma
	// Regions is the number of regions of rma, numbered from 1. Size is how many octets each region has,
	// or the memory of plain.
	Regions int `json:"regions,omitempty"`
	Size    int `json:"size"`
	Depth   int `json:"depth,omitempty"` // of plain: how many Reads are outstanding
	// Tight says that the window of an rma server admits one write of smallSize octets, and one more may
	// wait for it.
	Tight bool `json:"tight,omitempty"`
}

// A taker serves one connection until it ends.
type taker interface {
	take(ctx context.Context, c net.Conn) error
	close() error
}

func newTaker(s *service) (taker, error) {
	switch s.Kind {
	case kindRMA:
		return newRegions(s)
	case kindPlain:
		return newPlain(s)
	case kindTLS:
		return newStream()
	}
	return nil, fmt.Errorf("no service %q", s.Kind)
}

// A server is the process with the services.
type server struct {
	services []*listening // by number, from 1
}

// A listening is a service with its listener.
type listening struct {
	taker

	l    *net.TCPListener
	stop context.CancelFunc
	done sync.WaitGroup
}

// serve runs the server of one client until stdin ends.
func serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s := &server{services: make([]*listening, 1)}
	defer s.close()
	return peer.ServeControl(ctx, stdin, stdout, s.do)
}

func (s *server) close() {
	for n := range s.services {
		_ = s.closeService(n) // the client has left
	}
}

func (s *server) do(ctx context.Context, o *order) (a reply, err error) {
	switch o.Do {
	case doOpen:
		return s.open(ctx, o.Open)
	case doClose:
		return a, s.closeService(o.Service)
	case doCores:
		return a, useCores(o.Cores)
	}
	if o.Service < 1 || o.Service >= len(s.services) || s.services[o.Service] == nil {
		return a, fmt.Errorf("no service %d", o.Service)
	}
	r, ok := s.services[o.Service].taker.(*regions)
	if !ok {
		return a, errors.New("the service has no regions")
	}
	switch o.Do {
	case doHold:
		r.held.hold()
	case doHeld:
		err = r.held.wait()
	case doRelease:
		r.held.release()
	default:
		err = fmt.Errorf("no order %q", o.Do)
	}
	return a, err
}

func (s *server) open(ctx context.Context, what *service) (a reply, err error) {
	if what == nil {
		return a, errors.New("no service is named")
	}
	t, err := newTaker(what)
	if err != nil {
		return a, err
	}
	n := &listening{taker: t}
	if n.l, err = peer.Listen("127.0.0.1", peer.DefaultCC); err != nil {
		return a, errors.Join(err, t.close())
	}
	ctx, n.stop = context.WithCancel(ctx)
	n.done.Go(func() { n.accept(ctx) })
	s.services = append(s.services, n)
	return reply{Service: len(s.services) - 1, Addr: n.l.Addr().String()}, nil
}

// accept serves each connection in a goroutine of its own.
func (n *listening) accept(ctx context.Context) {
	for {
		c, err := n.l.AcceptTCP()
		if err != nil {
			return
		}
		n.done.Go(func() { _ = n.take(ctx, c) }) // the client sees why it has ended
	}
}

func (s *server) closeService(number int) error {
	if number < 1 || number >= len(s.services) || s.services[number] == nil {
		return nil // it is closed
	}
	n := s.services[number]
	s.services[number] = nil
	err := n.l.Close()
	n.stop()
	err = errors.Join(err, n.close())
	n.done.Wait()
	return err
}
