package main

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// ping is the client: for every ping it shows the server a source to read, waits,
// shows it a sink to write to, and waits again.
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
	qp, err := p.rnic.Dial(ctx, p.network, p.hostport(), &iwarp.QPConfig{
		PD: p.pd, IRD: 1, ORD: 1, Setup: e.setup, Trace: trace,
	})
	if err != nil {
		return err
	}
	for n := 0; p.count == 0 || n < p.count; n++ {
		if err := p.pingOnce(ctx, e, n); err != nil {
			_ = qp.Abort() // the first error counts
			<-qp.Done()
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
	return qp.Close()
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
	if p.verbose {
		fmt.Fprintf(p.stdout, "ping data: %s\n", text(e.buf))
	}
	return nil
}
