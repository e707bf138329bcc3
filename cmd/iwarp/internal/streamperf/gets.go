package streamperf

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
)

// fileSize is how many octets a server has; each operation takes some of them.
const fileSize = 64 * mib

// shape returns the Shape with which package rpc does what a READ does.
func (v *service) shape() rpc.Shape {
	return rpc.Shape{Kind: rpc.Get, Size: v.Size, Region: fileSize, Depth: v.Depth, CRC: v.CRC}
}

// acceptGets answers requests of package rpc.
func (v *service) acceptGets(ctx context.Context, n side, cr *iwarp.ConnRequest) error {
	s, err := rpc.NewServer(n.rnic, n.pd, v.shape(), peer.SourceOf(fileSize))
	if err != nil {
		return err
	}
	if _, err := cr.Accept(ctx, s.Config(n.pd)); err != nil {
		return err
	}
	return s.Serve()
}

// gets opens such a service, and connects to it.
func (s *stand) gets(name string, what *service) (*contest.Contender, error) {
	n, addr, err := s.near(what)
	if err != nil {
		return nil, err
	}
	c, err := rpc.NewClient(n.rnic, n.pd, what.shape(), peer.SourceOf)
	if err != nil {
		return nil, err
	}
	_, err = s.dial(n, addr, c.Config(n.pd))
	return &contest.Contender{Name: name, Size: what.Size, Run: c.Run}, err
}
