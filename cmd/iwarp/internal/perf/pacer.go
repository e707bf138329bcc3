package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// A slow connection is what RFC 4297 section 4 calls a slow background client: it
// needs a little now and then. Each Reads slowSize octets every slowEvery, so that
// 256 of them do 1,024 Reads a second.
const (
	slowSize  = 4 << 10
	slowEvery = 250 * time.Millisecond
	slowTick  = time.Millisecond
)

// A pacer does the Reads of all slow connections of a driver, one after the
// other, evenly spread over time, during a run.
type pacer struct {
	qps    []*iwarp.QP
	cq     *iwarp.CQ
	wr     []iwarp.SendWR
	ticker *time.Ticker
	stop   chan struct{}
	done   chan struct{}
	err    error // why the pacer has ended, when done is closed
}

// newPacer starts a pacer; from is the memory that the slow connections read.
func newPacer(pd *iwarp.PD, cq *iwarp.CQ, qps []*iwarp.QP, from iwarp.RemoteBuffer) (*pacer, error) {
	sink, err := pd.RegisterMR(make([]byte, slowSize), stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	n := min(slowSize, int(from.Len))
	p := &pacer{
		qps: qps, cq: cq, ticker: time.NewTicker(slowTick),
		wr:   []iwarp.SendWR{{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sink.Slice(0, n)}, Remote: part(from, 0, n)}},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	p.ticker.Stop()
	if err := p.warm(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.err = p.pace()
	}()
	return p, nil
}

// warmReads is the number of Reads after which a connection has allocated all that it needs for one Read at a time.
const warmReads = 4

// warm uses every connection: a connection that does a little now and then would otherwise
// be warming up all the time.
func (p *pacer) warm() error {
	for range warmReads {
		for _, qp := range p.qps {
			if err := qp.PostSend(p.wr...); err != nil {
				return err
			}
		}
		for left := len(p.qps); left > 0; left-- {
			if err := p.await(); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits for one Read.
func (p *pacer) await() error {
	var wcs [1]iwarp.WC
	if _, err := p.cq.Wait(context.Background(), wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}

// during does f, a run, beside the Reads. It fails if the Reads have ended before f.
func (p *pacer) during(f func() error) error {
	p.ticker.Reset(slowTick)
	defer p.ticker.Stop()
	err := f()
	select {
	case <-p.done:
		return errors.Join(err, fmt.Errorf("the slow connections: %w", p.err))
	default:
		return err
	}
}

func (p *pacer) pace() error {
	perTick := float64(len(p.qps)) * float64(slowTick) / float64(slowEvery)
	next, due := 0, 0.0
	for {
		select {
		case <-p.stop:
			return nil
		case <-p.ticker.C:
		}
		for due += perTick; due >= 1; due-- {
			if err := p.reap(); err != nil {
				return err
			}
			if err := p.qps[next].PostSend(p.wr...); err != nil {
				return err
			}
			next = (next + 1) % len(p.qps)
		}
	}
}

// reap takes the Reads that are done, and fails if one of them has failed.
func (p *pacer) reap() error {
	var wcs [64]iwarp.WC
	for {
		n := p.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				return err
			}
		}
		if n < len(wcs) {
			return nil
		}
	}
}

func (p *pacer) close() error {
	p.ticker.Stop()
	close(p.stop)
	<-p.done
	return p.err
}

// dialExtra makes the slow and the idle connections.
func (d *rdmaDriver) dialExtra(addr string) error {
	var cq *iwarp.CQ // of the slow connections; an idle one has its default CQs
	var slow []*iwarp.QP
	if d.w.Slow > 0 {
		var err error
		if cq, err = d.rnic.CreateCQ(d.w.Slow * 256); err != nil {
			return err
		}
	}
	for i := range d.w.Slow + d.w.Idle {
		cfg := &iwarp.QPConfig{PD: d.pd, MPA: d.w.mpa()}
		if i < d.w.Slow {
			cfg.SendCQ, cfg.RecvCQ = cq, cq
		}
		qp, err := d.dialOne(addr, cfg)
		if err != nil {
			return err
		}
		if i < d.w.Slow {
			slow = append(slow, qp)
		}
	}
	if d.w.Slow == 0 {
		return nil
	}
	var err error
	d.pacer, err = newPacer(d.pd, cq, slow, d.ends[0].theirs.src)
	return err
}

func (d *rdmaDriver) dialOne(addr string, cfg *iwarp.QPConfig) (*iwarp.QP, error) {
	ctx, stop := context.WithTimeout(context.Background(), peer.Timeout)
	defer stop()
	if err := authmode.Initiate(d.w.Auth, cfg); err != nil {
		return nil, err
	}
	if d.w.Network != "" {
		return d.rnic.Dial(ctx, d.w.Network, addr, cfg)
	}
	c, err := peer.Dial(addr, d.w.CC)
	if err != nil {
		return nil, err
	}
	return d.rnic.Client(ctx, c, cfg)
}
