package perf

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
)

// calls are the kinds of operations of package rpc.
var calls = map[string]rpc.Kind{opRPC: rpc.Get, opRPCWrite: rpc.Put, opRPCSend: rpc.PutInside}

// isCall reports whether the operations are requests that the peer answers.
func (w *workload) isCall() bool { return calls[w.Op] != "" }

// fetches reports whether the octets of the operations come from the server.
func (w *workload) fetches() bool { return w.Op == opRead || w.Op == opAtomic || w.Op == opRPC }

func (w *workload) shape() rpc.Shape {
	return rpc.Shape{Kind: calls[w.Op], Size: w.Size, Region: w.Region, Depth: w.Depth, CRC: w.CRC}
}

// checkCall refuses options that operations of package rpc do not support.
func (w *workload) checkCall() error {
	if w.isCall() && (w.Slow > 0 || w.Window > 0 || w.Moderate || w.Batch > 0 || w.Shared) {
		return fmt.Errorf("%s has neither slow connections nor a Solicitor, batches or shared sinks", w.Op)
	}
	return nil
}

// dialCall makes one connection for requests.
func (d *rdmaDriver) dialCall(addr string) error {
	c, err := rpc.NewClient(d.rnic, d.pd, d.w.shape(), peer.SourceOf)
	if err != nil {
		return err
	}
	cfg := c.Config(d.pd)
	cfg.MPA = d.w.mpa()
	cfg.MPA.ClientServer = true
	d.calls = append(d.calls, c)
	_, err = d.dialOne(addr, cfg)
	return err
}

// call does n operations on each connection.
func (d *rdmaDriver) call(n int, times []int64) ([]int64, error) {
	if d.w.Latency {
		return d.calls[0].Timed(n, times)
	}
	if len(d.calls) == 1 { // without the closure, which would be an allocation
		return times, d.calls[0].Run(n)
	}
	return times, each(d.calls, func(c *rpc.Client) error { return c.Run(n) })
}

// establishCall sets up the server's end of a connection for requests.
func (s *rdmaService) establishCall(ctx context.Context, cr *iwarp.ConnRequest) error {
	e, err := rpc.NewServer(s.rnic, s.pd, s.w.shape(), peer.SourceOf(s.w.Region))
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	cfg := e.Config(s.pd)
	cfg.MPA = s.w.mpa()
	if _, err := cr.Accept(ctx, cfg); err != nil {
		return err
	}
	s.tasks.Go(func() { _ = e.Serve() }) // ends with the QP; the driver sees why
	return nil
}
