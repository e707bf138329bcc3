package streamperf

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// An order is a request of the client to the server process: to open a service, or to close one.
type order struct {
	Open  *service `json:"open,omitempty"`
	Close int      `json:"close,omitempty"` // number of the service to close
}

// A reply is the result of an order.
type reply struct {
	Service int    `json:"service,omitempty"`
	Addr    string `json:"addr,omitempty"`
}

// What a service offers.
const (
	kindTCP    = "tcp"     // takes pieces of a stream over TCP
	kindSocket = "rsocket" // takes pieces of a stream
	kindEcho   = "echo"    // sends messages back, by an rsocket
	kindMemory = "memory"  // memory for RDMA Writes
	kindSends  = "sends"   // answers each Send by a Send
	kindGet    = "get"     // package rpc: an RDMA Write and a Send for each request
	kindNFS    = "nfs"     // READ by package rpcrdma
)

// A service describes a service that the server process is to open.
type service struct {
	Kind  string `json:"kind"`
	CRC   bool   `json:"crc,omitempty"`
	Size  int    `json:"size"`            // octets of an operation
	Depth int    `json:"depth,omitempty"` // of get and nfs: outstanding operations
}

// An opened is a service that is open.
type opened interface {
	addr() string
	close() error
}

func newService(ctx context.Context, what *service) (opened, error) {
	switch what.Kind {
	case kindTCP:
		return newTCPStreams(ctx, what)
	case kindSocket, kindEcho:
		return newSockets(ctx, what)
	case kindMemory:
		return newListening(ctx, what.acceptWrites)
	case kindSends:
		return newListening(ctx, what.acceptSends)
	case kindGet:
		return newListening(ctx, what.acceptGets)
	case kindNFS:
		return newListening(ctx, what.acceptCalls)
	}
	return nil, fmt.Errorf("no service %q", what.Kind)
}

// A server is the process with the services.
type server struct{ services []opened } // by number, from 1

// serve runs the server process until stdin ends.
func serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s := &server{services: make([]opened, 1)}
	defer s.close()
	return peer.ServeControl(ctx, stdin, stdout, s.do)
}

func (s *server) close() {
	for _, v := range s.services {
		if v != nil {
			_ = v.close() // the client has left
		}
	}
}

func (s *server) do(ctx context.Context, o *order) (a reply, err error) {
	if o.Open != nil {
		v, err := newService(ctx, o.Open)
		if err != nil {
			return a, err
		}
		s.services = append(s.services, v)
		return reply{Service: len(s.services) - 1, Addr: v.addr()}, nil
	}
	if o.Close < 1 || o.Close >= len(s.services) || s.services[o.Close] == nil {
		return a, errors.New("no such service")
	}
	v := s.services[o.Close]
	s.services[o.Close] = nil
	return a, v.close()
}
