package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A helper is a goroutine that calls one blocking helper after the other.
type helper struct {
	*user
	round  *round
	end    *end
	random *rand.Rand
	out    *iwarp.MR // source
	in     *iwarp.MR // sink
}

func newHelper(r *round, e *end, i int) (*helper, error) {
	h := &helper{user: r.m.user(fmt.Sprintf("helper %d, %s", i, e.name)), round: r, end: e, random: r.random()}
	var err error
	if h.out, err = e.host.pd.RegisterMR(make([]byte, largest), 0, nil); err != nil {
		return nil, err
	}
	h.in, err = e.host.pd.RegisterMR(make([]byte, largest), stag.LocalWrite, nil)
	return h, err
}

func (h *helper) work() {
	defer h.leave()
	for {
		h.end.pattern.Load().rest(h.random)
		if !h.once() {
			return
		}
	}
}

// once makes one call. It reports whether there is to be another.
func (h *helper) once() (again bool) {
	qp := h.end.qp
	n := size(h.random)
	peer := h.end.peer
	var do func(ctx context.Context) error
	m := h.end.pattern.Load()
	call := m.call(h.random)
	switch call {
	case callWrite:
		do = func(ctx context.Context) error {
			return qp.RDMAWrite(ctx, peer.written.Advertise(0, n), h.out.Slice(0, n))
		}
	case callRead:
		do = func(ctx context.Context) error { return qp.RDMARead(ctx, h.in.Slice(0, n), peer.read.Advertise(0, n)) }
	case callSend:
		do = func(ctx context.Context) error { return qp.Send(ctx, h.out.Slice(0, n)) }
	case callFetchAdd:
		do = func(ctx context.Context) error {
			_, err := qp.FetchAdd(ctx, peer.counter.Advertise(0, stag.AtomicLen), 1)
			return err
		}
	case callCompareSwap:
		do = func(ctx context.Context) error {
			_, err := qp.CompareSwap(ctx, peer.counter.Advertise(0, stag.AtomicLen), 0, 1)
			return err
		}
	case callCommit:
		do = func(ctx context.Context) error { return qp.Commit(ctx, peer.written.Advertise(0, n)) }
	case callDrain:
		do = qp.Drain
	case callRecv:
		do = func(ctx context.Context) error {
			_, err := qp.Recv(ctx, h.in.Slice(0, largest))
			return err
		}
	default:
		panic(call.String())
	}
	what, forever := call.String(), call != callRecv // a message may never come
	ctx, cancel := m.context(context.Background(), h.random, forever)
	defer cancel()
	err := h.call(ctx, what, false, func() error { return do(ctx) })
	return h.round.expected(ctx, h.name+": "+what, err)
}

// size returns the length of a message: most are short.
func size(r *rand.Rand) int {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return r.IntN(largest)
	}
	return r.IntN(256)
}

// A poster is the goroutine that serves a completion queue of send queues: it posts work with
// completions and waits for them.
type poster struct {
	*user
	round  *round
	cq     *iwarp.CQ
	ends   []*end
	random *rand.Rand
	wcs    [4]iwarp.WC
}

func newPoster(r *round, e *end) *poster {
	return &poster{user: r.m.user("poster, " + e.name), round: r, cq: e.qp.SendCQ(), random: r.random()}
}

func (q *poster) work() {
	defer q.leave()
	for {
		q.ends[0].pattern.Load().rest(q.random)
		outstanding := q.post()
		for outstanding > 0 {
			ctx, cancel := q.ends[0].pattern.Load().context(q.round.ctx, q.random, true)
			err := q.call(ctx, "CQ.Wait", false, func() error {
				n, err := q.cq.Wait(ctx, q.wcs[:])
				outstanding -= n
				return err
			})
			goOn := q.round.expected(ctx, q.name, err)
			cancel()
			if !goOn {
				return
			}
		}
		if q.round.ending.Load() {
			return
		}
	}
}

// post posts up to four work requests and returns how many it has posted.
func (q *poster) post() (n int) {
	for range 1 + q.random.IntN(len(q.wcs)) {
		e := q.ends[q.random.IntN(len(q.ends))]
		wr := iwarp.SendWR{Op: iwarp.OpRDMAWrite, Remote: e.peer.written.Advertise(0, 16), Inline: []byte("sixteen octets..")}
		if q.random.IntN(2) == 0 {
			wr = iwarp.SendWR{Op: iwarp.OpRDMARead} // of nothing
		}
		switch err := e.qp.PostSend(wr); {
		case err == nil:
			n++
		case errors.Is(err, iwarp.ErrQueueFull):
		case !q.round.ending.Load():
			q.round.fail(fmt.Errorf("%s: PostSend: %w", q.name, err))
			return n
		}
	}
	return n
}

// A consumer is the goroutine that polls a completion queue of receive queues, and posts their
// receives.
type consumer struct {
	*user
	round  *round
	cq     *iwarp.CQ
	ends   []*end
	owed   map[*iwarp.QP]int // receives that are to be posted
	sink   map[*iwarp.QP]*iwarp.MR
	random *rand.Rand
	wcs    [8]iwarp.WC
}

func newConsumer(r *round, e *end) *consumer {
	return &consumer{
		user: r.m.user("consumer, " + e.name), round: r, cq: e.qp.RecvCQ(), random: r.random(),
		owed: make(map[*iwarp.QP]int), sink: make(map[*iwarp.QP]*iwarp.MR),
	}
}

// add makes the consumer post receives to one more queue pair.
func (c *consumer) add(e *end) {
	mr, err := e.host.pd.RegisterMR(make([]byte, largest), stag.LocalWrite, nil)
	if err != nil {
		c.round.fail(err)
	}
	c.ends = append(c.ends, e)
	c.owed[e.qp], c.sink[e.qp] = posted, mr
}

func (c *consumer) work() {
	defer c.leave()
	for {
		m := c.ends[0].pattern.Load()
		if m.soon == 0 { // else it is back at once
			m.rest(c.random)
		}
		left := c.post()
		ctx, cancel := m.context(c.round.ctx, c.random, left == 0)
		err := c.call(ctx, "CQ.Wait", true, func() error {
			n, err := c.cq.Wait(ctx, c.wcs[:])
			for _, wc := range c.wcs[:n] {
				c.owed[wc.QP]++
			}
			return err
		})
		goOn := c.round.expected(ctx, c.name, err)
		cancel()
		if !goOn {
			return
		}
	}
}

// post posts the owed receives, and returns how many the queues did not take, because receives of
// cancelled helpers occupy their places.
func (c *consumer) post() (left int) {
	for qp, n := range c.owed {
		for ; n > 0; n-- {
			err := qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{c.sink[qp].Slice(0, largest)}})
			if errors.Is(err, iwarp.ErrQueueFull) {
				left += n
				break
			}
			if err != nil {
				if !c.round.ending.Load() {
					c.round.fail(fmt.Errorf("%s: PostRecv: %w", c.name, err))
				}
				n = 0
				break
			}
		}
		c.owed[qp] = n
	}
	return left
}
