package nvmeperf

import (
	"context"
	"errors"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
)

// A responder answers requests of package rpc.
type responder struct {
	shape   *rpc.Shape
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	l       *iwarp.Listener
	serving sync.WaitGroup
}

func newResponder(ctx context.Context, shape *rpc.Shape) (r *responder, err error) {
	r = &responder{shape: shape}
	if r.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if r.pd, err = r.rnic.AllocPD(); err != nil {
		return nil, errors.Join(err, r.rnic.Close())
	}
	if r.l, err = r.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil); err != nil {
		return nil, errors.Join(err, r.rnic.Close())
	}
	r.serving.Go(func() {
		_ = r.l.Serve(ctx, func(cr *iwarp.ConnRequest) { _ = r.take(ctx, cr) }) // the client sees why it has ended
	})
	return r, nil
}

// take serves a connection until its end.
func (r *responder) take(ctx context.Context, cr *iwarp.ConnRequest) error {
	s, err := rpc.NewServer(r.rnic, r.pd, *r.shape, peer.SourceOf(r.shape.Region))
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	if _, err := cr.Accept(ctx, s.Config(r.pd)); err != nil {
		return err
	}
	return s.Serve()
}

func (r *responder) numbers() numbers { return numbers{} }

func (r *responder) addr() string { return r.l.Addr().String() }

func (r *responder) close() error {
	err := errors.Join(r.l.Close(), r.rnic.Close())
	r.serving.Wait()
	return err
}

// caller connects to a responder, until close.
func (s *stand) caller(shape rpc.Shape) (*rpc.Client, error) {
	a, err := s.open(&service{Shape: &shape})
	if err != nil {
		return nil, err
	}
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return nil, err
	}
	s.later(rnic.Close)
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	c, err := rpc.NewClient(rnic, pd, shape, peer.SourceOf)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(s.b.ctx, peer.Timeout)
	defer stop()
	_, err = rnic.Dial(ctx, "tcp", a.Addr, c.Config(pd))
	return c, err
}
