package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goiwarp/iwarp"
)

// serve takes one client, or any number with -P.
func (p *pinger) serve(ctx context.Context) (err error) {
	trace, closeTrace, err := p.openTrace()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := closeTrace(); err == nil {
			err = cerr
		}
	}()
	l, err := p.rnic.Listen(ctx, p.network, p.hostport(), nil)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // nothing is lost with it
	p.log.Info("listening", "addr", l.Addr().String())
	switch {
	case p.json:
		_ = json.NewEncoder(p.stdout).Encode(map[string]string{"addr": l.Addr().String()}) // as for a report
	case !p.quiet:
		fmt.Fprintln(p.stdout, "listening on", l.Addr())
	}
	if p.persistent {
		return p.serveAll(ctx, l)
	}
	cr, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	return p.serveOne(ctx, cr, trace)
}

func (p *pinger) serveAll(ctx context.Context, l *iwarp.Listener) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		cr, err := l.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil // interrupted, which is how it ends
			}
			return err
		}
		clients.Go(func() {
			if err := p.serveOne(ctx, cr, nil); err != nil && ctx.Err() == nil {
				p.log.Warn("client failed", "addr", cr.RemoteAddr().String(), "err", err)
			}
		})
	}
}

// serveOne answers one client until it leaves.
func (p *pinger) serveOne(ctx context.Context, cr *iwarp.ConnRequest, trace io.Writer) error {
	e, err := p.newEnd(false)
	if err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	defer e.release()
	qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: p.pd, IRD: 1, ORD: 1, Setup: e.setup, Trace: trace})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err = p.answer(ctx, e); err != nil {
			break
		}
	}
	if errors.Is(err, errLeft) {
		p.log.Info("client has left", "addr", cr.RemoteAddr().String())
		return qp.Close()
	}
	_ = qp.Abort() // the first error counts
	<-qp.Done()
	return err
}

// answer does the server's side of one ping: it reads the client's source, says so, writes
// the same octets to its sink, and says so.
func (p *pinger) answer(ctx context.Context, e *pingEnd) error {
	src, err := e.receive(ctx)
	if err != nil {
		return err
	}
	if int64(src.Len) > int64(p.size) {
		return fmt.Errorf("the client pings with %d octets, this side takes %d (-S)", src.Len, p.size)
	}
	n := int(src.Len)
	if err := e.qp.RDMARead(ctx, e.mr.Slice(0, n), src); err != nil {
		return err
	}
	if p.verbose {
		fmt.Fprintf(p.stdout, "server ping data: %s\n", text(e.buf[:n]))
	}
	if err := e.send(ctx, iwarp.RemoteBuffer{}); err != nil {
		return err
	}
	sink, err := e.receive(ctx)
	if errors.Is(err, errLeft) {
		return errors.New("the client has left in the middle of a ping")
	}
	if err != nil {
		return err
	}
	if err := e.qp.RDMAWrite(ctx, sink, e.mr.Slice(0, n)); err != nil {
		return err
	}
	return e.send(ctx, iwarp.RemoteBuffer{})
}
