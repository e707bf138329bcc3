package nvmeperf

import (
	"context"
	"errors"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
)

// A responder answers requests of package rpc.
type responder struct {
	shape *rpc.Shape
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	l     *listener
}

func newResponder(ctx context.Context, what *service) (r *responder, err error) {
	r = &responder{shape: what.Shape}
	if r.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if r.pd, err = r.rnic.AllocPD(); err != nil {
		return nil, errors.Join(err, r.rnic.Close())
	}
	if r.l, err = listen(what.CC, func(c net.Conn) { _ = r.serve(ctx, c) }); err != nil { // the client sees why it has ended
		return nil, errors.Join(err, r.rnic.Close())
	}
	return r, nil
}

// serve serves a connection until its end.
func (r *responder) serve(ctx context.Context, c net.Conn) error {
	cr, err := r.rnic.Server(ctx, c, nil)
	if err != nil {
		return err
	}
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

func (r *responder) addr() string { return r.l.addr() }

func (r *responder) close() error {
	err := errors.Join(r.l.close(), r.rnic.Close())
	r.l.wait()
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
	conn, err := peer.Dial(a.Addr, s.b.opts.cc)
	if err != nil {
		return nil, err
	}
	_, err = rnic.Client(ctx, conn, c.Config(pd))
	return c, err
}
