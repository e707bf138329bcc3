package rmaperf

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
	"github.com/goiwarp/iwarp/rma"
)

// A scene is an rma server within this process, and clients to which its answers come over an emulated link.
type scene struct {
	ctx     context.Context
	server  *regions
	what    *service
	links   []*bottleneck.Link
	clients []*end
	served  sync.WaitGroup
}

func newScene(ctx context.Context, what *service) (*scene, error) {
	server, err := newRegions(what)
	return &scene{ctx: ctx, server: server, what: what}, err
}

// link adds a link.
func (s *scene) link(rate int64, latency time.Duration) *bottleneck.Link {
	l := bottleneck.New(bottleneck.Options{Rate: rate, Latency: latency, Sleep: bottleneck.Sleep})
	s.links = append(s.links, l)
	return l
}

// client adds a client at the end of a link.
func (s *scene) client(l *bottleneck.Link, cfg rma.ClientConfig, slots int) (*end, error) {
	near, far := l.Pair()
	s.served.Go(func() { _ = s.server.take(s.ctx, far) }) // the client sees why it has ended
	e, err := newEnd(s.ctx, near, s.what, cfg, slots)
	if err == nil {
		s.clients = append(s.clients, e)
	}
	return e, err
}

func (s *scene) close() (err error) {
	for _, l := range s.links {
		l.Close() // and with it the connections
	}
	var all sync.WaitGroup
	errs := make([]error, len(s.clients))
	for i, e := range s.clients {
		all.Go(func() { errs[i] = e.close() })
	}
	all.Wait()
	err = errors.Join(append(errs, s.server.close())...)
	s.served.Wait()
	return err
}
