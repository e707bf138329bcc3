package rpcrdma

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// errIRD is the error of a client that does not answer RDMA Reads.
var errIRD = errors.New("rpcrdma: the client takes no RDMA Reads")

// shared holds what the connections of a listener share.
type shared struct {
	cfg     Config
	calls   *pool // memory that RDMA Reads place octets in
	replies *pool // memory that RDMA Writes and Sends take octets from
}

func newShared(cfg *Config) (*shared, error) {
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &shared{
		cfg:     c,
		calls:   newPool(c.MaxBytes/2, c.MaxBytes/maxShare, stag.LocalWrite),
		replies: newPool(c.MaxBytes/2, c.MaxBytes/maxShare, 0),
	}, nil
}

// Accept accepts a connection request of a client. The Conn has its own budget of cfg.MaxBytes: use a Listener
// for a budget that all connections share. A client that takes no RDMA Reads is rejected.
func Accept(ctx context.Context, cr *iwarp.ConnRequest, cfg *Config) (*Conn, error) {
	s, err := newShared(cfg)
	if err != nil {
		_ = cr.Reject(nil)
		return nil, err
	}
	return s.accept(ctx, cr, nil)
}

// accept makes a connection. ended is called when it has ended.
func (s *shared) accept(ctx context.Context, cr *iwarp.ConnRequest, ended func(*Conn)) (*Conn, error) {
	if cr.IRD() == 0 {
		_ = cr.RejectDepths(nil, -1, 1)
		return nil, errIRD
	}
	c, err := newConn(s, cr)
	if err != nil {
		_ = cr.Reject(nil)
		return nil, err
	}
	c.onEnd = ended
	qp, err := cr.Accept(ctx, c.qpConfig(cr))
	if err != nil {
		c.release()
		return nil, fmt.Errorf("rpcrdma: %w", err)
	}
	c.ord = qp.ORD()
	c.local, c.remote = qp.LocalAddr(), qp.RemoteAddr()
	go c.serve()
	return c, nil
}

// qpConfig returns the configuration of the QP.
func (c *Conn) qpConfig(cr *iwarp.ConnRequest) *iwarp.QPConfig {
	q := c.cfg.QP
	q.PD, q.SendCQ, q.RecvCQ = c.home.pd, c.cq, c.cq
	q.SendDepth, q.RecvDepth = c.cfg.sendDepth(), c.cfg.receives()
	q.IRD = -1
	q.ORD = min(q.ORD, max(cr.IRD(), 1)) // one at a time, if the client does not state its IRD
	// No reply may be a Send with Invalidate unless both sides set the flag (RFC 8797 section 4.1).
	q.PrivateData = wire.Private{Invalidate: true, Send: c.cfg.Inline, Receive: c.cfg.Inline}.Append(nil)
	q.Setup = c.setUp
	return &q
}

// setUp posts the receives.
func (c *Conn) setUp(_ context.Context, qp *iwarp.QP) error {
	c.qp = qp
	for i := range c.calls {
		if err := qp.PostRecv(c.calls[i].receive()); err != nil {
			return err
		}
	}
	return nil
}
