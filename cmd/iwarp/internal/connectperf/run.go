package connectperf

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
	"github.com/goiwarp/iwarp/stag"
)

// rawLen is how many octets a raw connection sends and receives: the length of the Request and of the
// Reply of an enhanced set-up.
const rawLen = 24

// wordLen is the length of the RDMA Read with whose latency the set-up is compared.
const wordLen = 8

// readTime bounds how long such Reads are measured.
const readTime = 20 * time.Millisecond

// A run holds the connections of one point.
type run struct {
	point
	client *client
	addr   string
	qc     *iwarp.QPConfig

	mu    sync.Mutex
	qps   []*iwarp.QP
	conns []*net.TCPConn
	ready []time.Duration // how long each took
	err   error
}

func (c *client) newRun(p point) (*run, error) {
	qc, err := c.config(p.Auth)
	if err != nil {
		return nil, err
	}
	r := &run{
		point: p, client: c, qc: qc, addr: c.addrs[p.Auth],
		qps: make([]*iwarp.QP, 0, p.N), conns: make([]*net.TCPConn, 0, p.N), ready: make([]time.Duration, 0, p.N),
	}
	if p.How == howRaw {
		r.addr = c.addrs[howRaw]
	}
	return r, nil
}

// up sets all connections up.
func (r *run) up(ctx context.Context) error {
	switch r.How {
	case howRaw:
		r.workers(func() error { return r.exchange() })
	case howMany:
		r.many(ctx)
	case howPaced:
		r.paced(ctx)
	case howEach:
		r.each(func() error { return r.dial(ctx) })
	default:
		r.workers(func() error { return r.dial(ctx) })
	}
	if r.err == nil && len(r.ready) < r.N {
		r.err = errors.New("connections are missing")
	}
	return r.err
}

// many sets them up by cm.DialMany.
func (r *run) many(ctx context.Context) {
	targets := func(yield func(cm.Target) bool) {
		for range r.N {
			if !yield(cm.Target{Network: "tcp", Addr: r.addr}) {
				return
			}
		}
	}
	o := &cm.Options{RNIC: r.client.rnic, QP: r.qc, InFlight: r.Window, PerHost: -1}
	for _, res := range cm.DialMany(ctx, targets, o) {
		if res.Err != nil {
			r.err = res.Err
			return
		}
		r.qps, r.ready = append(r.qps, res.QP), append(r.ready, res.Elapsed)
	}
}

// each calls f in a goroutine for each connection.
func (r *run) each(f func() error) {
	var all sync.WaitGroup
	for range r.N {
		all.Go(func() { r.failed(f()) })
	}
	all.Wait()
}

// workers calls f for each connection in as many goroutines as may be in flight.
func (r *run) workers(f func() error) {
	left := make(chan struct{}, r.N)
	for range r.N {
		left <- struct{}{}
	}
	close(left)
	var all sync.WaitGroup
	for range min(r.Window, r.N) {
		all.Go(func() {
			for range left {
				r.failed(f())
			}
		})
	}
	all.Wait()
}

func (r *run) failed(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// dial sets one QP up.
func (r *run) dial(ctx context.Context) error {
	began := time.Now()
	qp, err := r.client.rnic.Dial(ctx, "tcp", r.addr, r.qc)
	took := time.Since(began)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.qps, r.ready = append(r.qps, qp), append(r.ready, took)
	return nil
}

// exchange sets one raw connection up.
func (r *run) exchange() error {
	began := time.Now()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		return err
	}
	var b [rawLen]byte
	if _, err = c.Write(b[:]); err == nil {
		_, err = io.ReadFull(c, b[:])
	}
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns, r.ready = append(r.conns, c.(*net.TCPConn)), append(r.ready, took)
	return err
}

// read measures RDMA Reads on one of the connections.
func (r *run) read(ctx context.Context) (time.Duration, error) {
	if len(r.qps) == 0 {
		return 0, nil
	}
	qp := r.qps[0]
	var at iwarp.RemoteBuffer
	if err := at.UnmarshalBinary(qp.PrivateData()); err != nil {
		return 0, err
	}
	mr, err := r.client.pd.RegisterMR(make([]byte, wordLen), stag.LocalWrite, nil)
	if err != nil {
		return 0, err
	}
	defer mr.Close() //nolint:errcheck // it is used only here
	var took []time.Duration
	for end := time.Now().Add(readTime); len(took) < 3 || time.Now().Before(end); {
		began := time.Now()
		if err := qp.RDMARead(ctx, mr.Slice(0, wordLen), at); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return stats.Quantile(took, 50), nil
}

// down ends all connections.
func (r *run) down(ctx context.Context) (err error) {
	for _, c := range r.conns {
		_ = c.SetLinger(0) // otherwise that many connections would use up the ports
		_ = c.Close()
	}
	for _, derr := range cm.DisconnectMany(ctx, slices.Values(r.qps), nil) {
		err = errors.Join(err, derr)
	}
	return err
}
