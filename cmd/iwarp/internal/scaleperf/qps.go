package scaleperf

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/stag"
)

// Purposes of a queue pair that a TCP connection does not have, as its private data say.
const (
	sayWrite = 'w' // blocks that are written
	sayLoad  = 'l' // a part of the load
)

// qps are queue pairs.
type qps struct {
	rnic   *iwarp.RNIC
	set    *exporter.Set // with it
	pd     *iwarp.PD
	silent time.Duration   // Config.PeerTimeout
	idle   *iwarp.QPConfig // of queue pairs that wait for a message
	sink   *iwarp.MR       // the memory that is written to
	block  int             // octets for each connection of the load
	talker *talker

	mu      sync.Mutex
	tally   tally
	held    []*iwarp.QP // of the load
	writers map[string]*writer
}

// open opens the RNIC, for at most maxQP queue pairs.
func (q *qps) open(maxQP int) (err error) {
	if q.rnic != nil {
		return nil
	}
	q.writers = make(map[string]*writer)
	if q.rnic, err = iwarp.Open(&iwarp.Config{PeerTimeout: q.silent, Limits: iwarp.Limits{MaxQP: maxQP, MaxHalfOpen: maxHalfOpen}}); err != nil {
		return err
	}
	q.set = exporter.NewSet()
	q.set.Add(q.rnic)
	if q.pd, err = q.rnic.AllocPD(); err != nil {
		return err
	}
	mr, err := q.pd.RegisterMR(make([]byte, messageLen), stag.LocalWrite, nil)
	q.idle = &iwarp.QPConfig{PD: q.pd, PrivateData: []byte{sayIdle}, Setup: func(_ context.Context, qp *iwarp.QP) error {
		return qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, messageLen)}})
	}}
	return err
}

func (q *qps) close() {
	if q.rnic != nil {
		_ = q.set.Close(q.rnic) // the process ends
	}
}

// maxHalfOpen bounds the resources of connections in set-up that are finally refused.
const maxHalfOpen = 4 * window

func (q *qps) listen(ctx context.Context, o *listenOrder) (addrs []string, err error) {
	if err := q.open(o.MaxQP); err != nil {
		return nil, err
	}
	q.block = o.Block
	if q.sink, err = q.pd.RegisterMR(make([]byte, writeLen*writeDepth), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil); err != nil {
		return nil, err
	}
	for i := range o.Addrs {
		l, err := q.rnic.Listen(ctx, "tcp", net.JoinHostPort(loopback(i), "0"), nil)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, l.Addr().String())
		go l.Serve(context.Background(), q.serve) //nolint:errcheck // ends with the process
	}
	return addrs, nil
}

// serve serves a connection.
func (q *qps) serve(cr *iwarp.ConnRequest) {
	private := cr.PrivateData()
	if len(private) != 1 {
		_ = cr.Reject(nil)
		return
	}
	var err error
	switch private[0] {
	case sayIdle:
		_, err = cr.Accept(context.Background(), q.idle)
	case sayBusy:
		err = q.answers(cr)
	case sayWrite:
		_, err = cr.Accept(context.Background(), &iwarp.QPConfig{PD: q.pd, PrivateData: advertised(q.sink)})
	case sayLoad:
		err = q.takesLoad(cr)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tally.add(err)
}

func advertised(mr *iwarp.MR) []byte {
	b, _ := mr.Advertise(0, int(mr.Len())).AppendBinary(nil) // never fails
	return b
}

func (q *qps) dial(ctx context.Context, o *dialOrder) error {
	if err := q.open(maxQPs); err != nil {
		return err
	}
	co := &cm.Options{RNIC: q.rnic, QP: q.idle, InFlight: o.Window, PerHost: -1}
	for _, r := range cm.DialMany(ctx, targets(o.Addrs, o.N), co) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// targets returns n targets, with the addresses in turn.
func targets(addrs []string, n int) iter.Seq[cm.Target] {
	return func(yield func(cm.Target) bool) {
		for i := range n {
			if !yield(cm.Target{Network: "tcp", Addr: addrs[i%len(addrs)]}) {
				return
			}
		}
	}
}

// A talker is one end of the busy connection.
type talker struct {
	cq   *iwarp.CQ
	qp   *iwarp.QP
	recv []iwarp.RecvWR
	send []iwarp.SendWR
	wcs  [1]iwarp.WC
}

// talkDepth is the depth of a talker's send queue: work requests without a completion leave it in groups.
const talkDepth = 64

func (q *qps) newTalker() (t *talker, err error) {
	t = new(talker)
	if t.cq, err = q.rnic.CreateCQ(talkDepth + 1); err != nil {
		return nil, err
	}
	t.cq.SetWaitMode(iwarp.WaitBlock)
	mem := make([]byte, messageLen)
	mr, err := q.pd.RegisterMR(mem, stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	t.recv = []iwarp.RecvWR{{Local: []iwarp.SGE{mr.Slice(0, messageLen)}}}
	t.send = []iwarp.SendWR{{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: mem}}
	return t, nil
}

func (t *talker) config(pd *iwarp.PD, private ...byte) *iwarp.QPConfig {
	return &iwarp.QPConfig{
		PD: pd, SendCQ: t.cq, RecvCQ: t.cq, SendDepth: talkDepth, RecvDepth: 1, PrivateData: private,
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			t.qp = qp
			return qp.PostRecv(t.recv...)
		},
	}
}

// hears waits for a message, and posts its receive again.
func (t *talker) hears() error {
	if _, err := t.cq.Wait(context.Background(), t.wcs[:]); err != nil {
		return err
	}
	if wc := &t.wcs[0]; wc.Err() != nil || wc.Op != iwarp.OpRecv || wc.Len != messageLen {
		return errors.Join(fmt.Errorf("completion of a %v of %d octets", wc.Op, wc.Len), wc.Err())
	}
	return t.qp.PostRecv(t.recv...)
}

// answers answers each message with another, until the connection ends.
func (q *qps) answers(cr *iwarp.ConnRequest) error {
	t, err := q.newTalker()
	if err != nil {
		return err
	}
	if _, err := cr.Accept(context.Background(), t.config(q.pd)); err != nil {
		return err
	}
	for t.hears() == nil {
		if err := t.qp.PostSend(t.send...); err != nil {
			break
		}
	}
	return nil
}

func (q *qps) busy(ctx context.Context, addr string) error {
	if err := q.open(maxQPs); err != nil {
		return err
	}
	var err error
	if q.talker, err = q.newTalker(); err != nil {
		return err
	}
	_, err = q.rnic.Dial(ctx, "tcp", addr, q.talker.config(q.pd, sayBusy))
	return err
}

func (q *qps) exchange() error {
	if err := q.talker.qp.PostSend(q.talker.send...); err != nil {
		return err
	}
	return q.talker.hears()
}
