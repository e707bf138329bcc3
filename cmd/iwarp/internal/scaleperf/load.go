package scaleperf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/stag"
)

// A loadOrder requests N connections, which write to the peer for that time.
type loadOrder struct {
	Addrs []string      `json:"addrs"`
	N     int           `json:"n"`
	Block int           `json:"block"`
	For   time.Duration `json:"for"`
}

// A tally counts the results of connections. A server counts Limited, a client counts Writes.
type tally struct {
	Accepted int    `json:"accepted"`
	Limited  int    `json:"limited"` // refused with ErrLimit
	Failed   int    `json:"failed"`
	Writes   int    `json:"writes"`
	Broken   int    `json:"broken"` // writes that failed
	Error    string `json:"error"`  // the last one
}

func (t *tally) add(err error) {
	switch {
	case err == nil:
		t.Accepted++
		return
	case errors.Is(err, iwarp.ErrLimit):
		t.Limited++
	default:
		t.Failed++
	}
	t.Error = err.Error()
}

// do carries out the orders that only queue pairs can.
func (q *qps) do(ctx context.Context, o *order) (r reply, err error) {
	switch {
	case o.Write != nil:
		err = q.writes(ctx, o.Write)
	case o.Load != nil:
		r.Tally, err = q.loads(ctx, o.Load)
	case o.Leave:
		for _, qp := range q.held {
			err = errors.Join(err, qp.Abort())
		}
		q.held = nil
	case o.Scrape:
		r.Elapsed, err = q.scrape(ctx)
	case o.Tally:
		q.mu.Lock()
		t := q.tally
		q.tally = tally{}
		q.mu.Unlock()
		r.Tally = &t
	default:
		err = errors.New("no such order")
	}
	return r, err
}

// takesLoad takes a connection of the load, and gives it memory of its own for its lifetime.
func (q *qps) takesLoad(cr *iwarp.ConnRequest) error {
	mr, err := q.pd.RegisterMR(make([]byte, q.block), stag.LocalWrite|stag.RemoteWrite, nil)
	if err != nil {
		return err
	}
	qp, err := cr.Accept(context.Background(), &iwarp.QPConfig{PD: q.pd, PrivateData: advertised(mr)})
	if err != nil {
		return errors.Join(err, mr.Close())
	}
	go func() {
		<-qp.Done()
		_ = mr.Close() // no QP is left that uses it
	}()
	return nil
}

// loads connects, and writes on those that were accepted.
func (q *qps) loads(ctx context.Context, o *loadOrder) (*tally, error) {
	if err := q.open(maxQPs); err != nil {
		return nil, err
	}
	mr, err := q.pd.RegisterMR(make([]byte, o.Block), stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	defer mr.Close() //nolint:errcheck // nothing is outstanding any more
	t := new(tally)
	co := &cm.Options{RNIC: q.rnic, QP: &iwarp.QPConfig{PD: q.pd, PrivateData: []byte{sayLoad}}, InFlight: window, PerHost: -1}
	for _, r := range cm.DialMany(ctx, targets(o.Addrs, o.N), co) {
		t.add(r.Err)
		if r.Err == nil {
			q.held = append(q.held, r.QP)
		}
	}
	return t, q.presses(ctx, o, mr, t)
}

// presses writes to all peers in turn, with as many Writes outstanding as the window.
func (q *qps) presses(ctx context.Context, o *loadOrder, mr *iwarp.MR, t *tally) error {
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	var all sync.WaitGroup
	for w := range min(window, len(q.held)) {
		all.Go(func() {
			for i := w; ctx.Err() == nil; i = (i + window) % len(q.held) {
				err := pressOne(q.held[i], mr)
				q.mu.Lock()
				if err == nil {
					t.Writes++
				} else {
					t.Broken, t.Error = t.Broken+1, err.Error()
				}
				q.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return nil
}

func pressOne(qp *iwarp.QP, mr *iwarp.MR) error {
	var to iwarp.RemoteBuffer
	if err := to.UnmarshalBinary(qp.PrivateData()); err != nil {
		return err
	}
	return qp.RDMAWrite(context.Background(), to, mr.Slice(0, int(mr.Len())))
}

// Of write_1m_crc.
const (
	writeLen   = mib
	writeDepth = 8
)

// A writeOrder requests N Writes to the server at Addr.
type writeOrder struct {
	Addr string `json:"addr"`
	N    int    `json:"n"`
}

// A writer writes blocks to a server.
type writer struct {
	qp   *iwarp.QP
	cq   *iwarp.CQ
	wrs  []iwarp.SendWR
	last iwarp.RemoteBuffer
	mr   *iwarp.MR
}

func (q *qps) writes(ctx context.Context, o *writeOrder) error {
	if err := q.open(maxQPs); err != nil {
		return err
	}
	w := q.writers[o.Addr]
	if w == nil {
		var err error
		if w, err = q.newWriter(ctx, o.Addr); err != nil {
			return err
		}
		q.writers[o.Addr] = w
	}
	return w.run(ctx, o.N)
}

func (q *qps) newWriter(ctx context.Context, addr string) (w *writer, err error) {
	w = new(writer)
	if w.cq, err = q.rnic.CreateCQ(2 * writeDepth); err != nil {
		return nil, err
	}
	if w.mr, err = q.pd.RegisterMR(make([]byte, writeLen*writeDepth), stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	qc := &iwarp.QPConfig{PD: q.pd, SendCQ: w.cq, SendDepth: 2 * writeDepth, PrivateData: []byte{sayWrite}}
	if w.qp, err = q.rnic.Dial(ctx, "tcp", addr, qc); err != nil {
		return nil, err
	}
	if err := w.last.UnmarshalBinary(w.qp.PrivateData()); err != nil {
		return nil, err
	}
	for i := range writeDepth {
		to := w.last
		to.TO, to.Len = to.TO+uint64(i*writeLen), writeLen
		w.wrs = append(w.wrs, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{w.mr.Slice(i*writeLen, writeLen)}, Remote: to})
	}
	w.last.Len = 1
	return w, nil
}

// run writes n blocks, and reads an octet of the last one.
func (w *writer) run(ctx context.Context, n int) error {
	var wcs [writeDepth]iwarp.WC
	posted, done := 0, 0
	for done < n {
		for posted < n && posted-done < writeDepth {
			if err := w.qp.PostSend(w.wrs[posted%writeDepth]); err != nil {
				return err
			}
			posted++
		}
		got, err := w.cq.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for _, wc := range wcs[:got] {
			if err := wc.Err(); err != nil {
				return fmt.Errorf("a write: %w", err)
			}
		}
		done += got
	}
	return w.qp.RDMARead(ctx, w.mr.Slice(0, 1), w.last)
}
