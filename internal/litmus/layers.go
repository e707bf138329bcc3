package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/internal/setup"
)

// A layer is a lower layer under the streams.
type layer struct {
	name    string
	short   string // for a table
	kind    layers
	network string // empty: records
	plain   bool   // iwarp.Config.PlainIO
	geometry
}

// allLayers lists the layers that programs run over.
var allLayers = []layer{
	{name: "pipe", short: "pipe", kind: inOrder, network: "pipe", geometry: small},
	{name: "tcp", short: "tcp", kind: inOrder, network: "tcp", geometry: small},
	{name: "tcp, large blocks", short: "tcp large", kind: inOrder, network: "tcp", geometry: large},
	{name: "tcp, package net", short: "tcp plain", kind: inOrder, network: "tcp", plain: true, geometry: small},
	{name: "records out of order", short: "records", kind: reordering, geometry: small},
}

// A rig is two hosts with two streams between them. Any number of bursts use it, one after
// another.
type rig struct {
	layer layer
	sides [hosts]*side
	qps   [ends]*iwarp.QP
	rnd   *rand.Rand
	next  uint64 // run
}

const (
	sendDepth = mostSlots * (maxOps + 2)
	recvDepth = mostSlots*maxOps + 1
	reads     = 16
)

// newRig chooses the size of segments, and the options of MPA, at random.
func newRig(ctx context.Context, l layer, seed uint64) (g *rig, err error) {
	g = &rig{layer: l, rnd: rand.New(rand.NewPCG(seed, 0)), next: 1}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	for i := range g.sides {
		if g.sides[i], err = newSide(&iwarp.Config{PlainIO: l.plain}, l.geometry); err != nil {
			return g, err
		}
	}
	for _, e := range []end{nearA, nearB} {
		if err = g.connect(ctx, e); err != nil {
			return g, fmt.Errorf("stream %v over %s: %w", e, l.name, err)
		}
	}
	g.sides[near].qp, g.sides[far].qp = g.qps[nearA], g.qps[farA]
	return g, nil
}

// config returns the configuration of the QP at an end. Its queues have CQs of their own.
func (g *rig) config(e end, mpa iwarp.MPAOptions) (*iwarp.QPConfig, error) {
	h := g.sides[e.host()]
	cqs := [2]*iwarp.CQ{}
	for i, depth := range []int{sendDepth, recvDepth} {
		var err error
		if cqs[i], err = h.rnic.CreateCQ(depth); err != nil {
			return nil, err
		}
	}
	return &iwarp.QPConfig{
		PD: h.pd, SendCQ: cqs[0], RecvCQ: cqs[1], SendDepth: sendDepth, RecvDepth: recvDepth, IRD: reads, ORD: reads,
		MPA: mpa, Commit: &iwarp.CommitOptions{},
	}, nil
}

// connect makes the stream of a near end.
func (g *rig) connect(ctx context.Context, e end) error {
	sizes := [...]int{128, 256, 1024}
	size := sizes[g.rnd.IntN(len(sizes))]
	if g.layer.geometry == large {
		size = 0 // as the path allows
	}
	mpa := iwarp.MPAOptions{MaxULPDU: size, NoCRC: g.rnd.IntN(2) == 0}
	var configs [2]*iwarp.QPConfig
	for i, e := range []end{e, e.peer()} {
		var err error
		if configs[i], err = g.config(e, mpa); err != nil {
			return err
		}
	}
	if g.layer.network == "" {
		return g.connectRecords(ctx, e, size, configs)
	}
	return g.dial(ctx, e, configs)
}

func (g *rig) connectRecords(ctx context.Context, e end, size int, configs [2]*iwarp.QPConfig) (err error) {
	a, b := recordpipe.New(recordpipe.Options{
		MaxULPDU: size, Window: 16, Seed: g.rnd.Uint64(), Read: 1 + g.rnd.IntN(8),
	})
	if g.qps[e], err = g.sides[near].rnic.Client(ctx, &setup.Layer{LLP: a}, configs[0]); err != nil {
		return err
	}
	g.qps[e.peer()], err = g.sides[far].rnic.Client(ctx, &setup.Layer{LLP: b}, configs[1])
	return err
}

func (g *rig) dial(ctx context.Context, e end, configs [2]*iwarp.QPConfig) error {
	addr := "127.0.0.1:0"
	if g.layer.network == "pipe" {
		addr = ""
	}
	l, err := g.sides[far].rnic.Listen(ctx, g.layer.network, addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			g.qps[e.peer()], err = cr.Accept(ctx, configs[1])
		}
		accepted <- err
	}()
	g.qps[e], err = g.sides[near].rnic.Dial(ctx, g.layer.network, l.Addr().String(), configs[0])
	if err != nil {
		_ = l.Close()
	}
	return errors.Join(err, <-accepted)
}

func (g *rig) close() error {
	var errs []error
	for _, h := range g.sides {
		if h != nil {
			errs = append(errs, h.rnic.Close())
		}
	}
	return errors.Join(errs...)
}
