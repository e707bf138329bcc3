package nvmeperf

import (
	"context"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
)

// What an order requests.
const (
	doOpen  = "open"  // a service
	doClose = "close" // a service
	doStats = "stats" // of a service
	doClear = "clear" // the numbers that a target has sampled
)

// An order is a request of the host to the process of the target.
type order struct {
	Do      string   `json:"do"`
	Open    *service `json:"open,omitempty"`
	Service int      `json:"service,omitempty"` // number
}

// A reply is the result of an order.
type reply struct {
	Service int     `json:"service,omitempty"`
	Addr    string  `json:"addr,omitempty"`
	Stats   numbers `json:"stats,omitzero"`
}

// A service is a target; with a Shape, a server of package rpc; with Attack, a hostile host.
type service struct {
	CRC    bool       `json:"crc,omitempty"`
	CC     string     `json:"cc,omitempty"`     // congestion control; empty: the system's
	Disk   string     `json:"disk,omitempty"`   // what backs the namespace: a backend.Spec
	Window int64      `json:"window,omitempty"` // of the target's Solicitor; 0: there is none
	Shape  *rpc.Shape `json:"shape,omitempty"`
	Attack string     `json:"attack,omitempty"` // the address of the target
}

// An opened is a service that is open.
type opened interface {
	addr() string
	numbers() numbers
	close() error
}

// A server is the process with the services.
type server struct{ services []opened } // by number, from 1

// serve runs the process of the target until stdin ends.
func serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s := &server{services: make([]opened, 1)}
	defer s.close()
	return peer.ServeControl(ctx, stdin, stdout, s.do)
}

func (s *server) close() {
	for _, v := range s.services {
		if v != nil {
			_ = v.close() // the host has left
		}
	}
}

func (s *server) do(ctx context.Context, o *order) (a reply, err error) {
	if o.Do == doOpen {
		return s.open(ctx, o.Open)
	}
	if o.Service < 1 || o.Service >= len(s.services) || s.services[o.Service] == nil {
		return a, fmt.Errorf("no service %d", o.Service)
	}
	v := s.services[o.Service]
	if o.Do == doClose {
		s.services[o.Service] = nil
		return a, v.close()
	}
	t, ok := v.(*disk)
	switch {
	case o.Do == doStats:
		a.Stats = v.numbers()
	case ok && o.Do == doClear:
		t.sampled.clear()
	default:
		return a, fmt.Errorf("no order %q for service %d", o.Do, o.Service)
	}
	return a, nil
}

func (s *server) open(ctx context.Context, what *service) (a reply, err error) {
	if what == nil {
		return a, fmt.Errorf("no service is named")
	}
	var v opened
	switch {
	case what.Shape != nil:
		v, err = newResponder(ctx, what)
	case what.Attack != "":
		v, err = newEnemyService(ctx, what.Attack)
	default:
		v, err = newDisk(ctx, what)
	}
	if err != nil {
		return a, err
	}
	s.services = append(s.services, v)
	return reply{Service: len(s.services) - 1, Addr: v.addr()}, nil
}
