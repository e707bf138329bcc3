package main

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

// ping runs the client: for every ping it names a source that the server is to read, waits,
// names a sink to which the server is to write, and waits again.
func (p *pinger) ping(ctx context.Context) (err error) {
	trace, closeTrace, err := p.openTrace()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := closeTrace(); err == nil {
			err = cerr
		}
	}()
	e, err := p.newEnd(true)
	if err != nil {
		return err
	}
	defer e.release()
	qp, err := p.dial(ctx, &iwarp.QPConfig{PD: p.pd, IRD: 1, ORD: 1, Setup: e.setup, Trace: trace})
	if err != nil {
		return err
	}
	r := p.newReport(qp.RemoteAddr().String())
	n, err := p.pings(ctx, e, r)
	if err == nil {
		r.summarize()
		return qp.Close()
	}
	_ = qp.Abort() // the first error counts
	<-qp.Done()
	r.summarize()
	if ctx.Err() != nil && n > 0 {
		return nil // interrupted, which is how it ends
	}
	return fmt.Errorf("ping %d: %w", n, err)
}

// setupTime bounds the set-up of a connection: a peer that does not use iWARP may accept TCP, and send nothing.
const setupTime = 30 * time.Second

func (p *pinger) dial(ctx context.Context, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	return p.rnic.Dial(ctx, p.network, p.hostport(), qc)
}

// pings exchanges data until all pings are done, and returns how many there were.
func (p *pinger) pings(ctx context.Context, e *pingEnd, r *pingReport) (n int, err error) {
	for ; p.count == 0 || n < p.count; n++ {
		if n > 0 {
			if pause(ctx, p.interval) != nil {
				return n, nil // interrupted, which is how it ends; no ping is in progress
			}
		}
		began := time.Now()
		if err := p.pingOnce(ctx, e, n); err != nil {
			return n, err
		}
		r.ping(n, time.Since(began), e.buf)
	}
	return n, nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pinger) pingOnce(ctx context.Context, e *pingEnd, n int) error {
	fillPing(e.source, n)
	for _, mr := range []*iwarp.MR{e.srcMR, e.mr} {
		if err := e.send(ctx, mr.Advertise(0, p.size)); err != nil {
			return err
		}
		if _, err := e.receive(ctx); err != nil {
			return err
		}
	}
	if p.validate {
		if err := difference(e.buf, e.source); err != nil {
			return fmt.Errorf("data differs: %w", err)
		}
	}
	return nil
}
