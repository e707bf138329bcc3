package cm

import (
	"cmp"
	"container/list"
	"context"
	"time"

	"github.com/goiwarp/iwarp"
)

// A qpState is the state of a QP of a pool.
//
//	state        event                                                  next
//	qpOpening    established                                            qpIdle
//	             failed                                                 qpGone
//	             Drain, Close                                           qpCalledOff
//	qpCalledOff  established all the same                               qpClosing
//	             failed                                                 qpGone
//	qpIdle       Get                                                    qpLeased
//	             Idle is over, Max, Drain, Close, found to have ended   qpClosing
//	qpLeased     the last Release                                       qpIdle
//	             Drain, Close, another peer's turn                      qpRetired
//	             Release of one that is broken                          qpBroken
//	             found to have ended                                    qpClosing
//	qpRetired    Release of one that is broken                          qpBroken
//	             the last Release, the end of the time of Drain         qpClosing
//	qpBroken     likewise                                               qpClosing
//	qpClosing    the QP has ended                                       qpGone
//
// Only QPs in qpIdle, and in qpLeased if QPs are shared, are leased, and no state from qpRetired on
// leads back to those.
type qpState uint8

const (
	qpOpening   qpState = iota
	qpCalledOff         // being set up, and not wanted any more
	qpIdle
	qpLeased
	qpRetired // leased, and not to be leased again
	qpBroken  // the same, because it has failed: outstanding work requests would never end
	qpClosing
	qpGone
)

// A pooled is a QP of a pool, guarded by the pool's mutex.
type pooled struct {
	peer     *poolPeer
	state    qpState
	qp       *iwarp.QP          // from qpIdle on
	cancel   context.CancelFunc // of the set-up
	users    int
	since    time.Time     // of qpIdle
	element  *list.Element // of Pool.idle, in qpIdle
	failures int           // consecutive failures before this QP; 0 once it has worked
	gone     chan struct{} // closed in qpGone
	cut      error         // why it was aborted instead of an orderly end; nil: it was not
}

// move changes the state, and updates the counters and lists of the pool.
func (p *Pool) move(q *pooled, to qpState) {
	switch q.state {
	case qpIdle:
		p.idle.Remove(q.element)
		q.element = nil
	case qpClosing:
		p.closing--
	case qpRetired:
		p.retired--
	default:
	}
	q.state = to
	switch to {
	case qpIdle:
		q.since = time.Now()
		q.element = p.idle.PushBack(q)
		p.sweepLater()
	case qpClosing:
		p.closing++
	case qpRetired:
		p.retired++
	case qpGone:
		p.total--
		q.peer.remove(q)
		close(q.gone)
	default:
	}
}

// open begins to set up a QP.
func (p *Pool) open(r *poolPeer) {
	q := &pooled{peer: r, failures: r.failures, gone: make(chan struct{})}
	r.qps = append(r.qps, q)
	r.opening++
	p.total++
	ctx, cancel := context.WithCancel(p.ctx)
	q.cancel = cancel
	p.all.Go(func() {
		defer cancel()
		qp, err := (*iwarp.QP)(nil), errSetupEnded
		defer func() { p.opened(q, qp, err) }() // also if QPConfig.Setup ends this goroutine
		qp, err = p.dial(ctx, r.peerName, q.failures+1)
	})
}

// dial sets up one QP.
func (p *Pool) dial(ctx context.Context, n peerName, attempt int) (*iwarp.QP, error) {
	d := p.dialing.newDialer()
	defer d.end()
	defer d.limit.close()
	t := Target{Network: n.network, Addr: n.addr}
	if err := checkAddr(&t); err != nil {
		return nil, &SetupError{Target: t, Attempt: attempt, Err: err}
	}
	var res Result
	if err := d.limit.end(d.attempt(d.limit.begin(ctx, setupTimeout), &t, p.cfg.QP, &res)); err != nil {
		return nil, &SetupError{Target: t, Stage: res.Stage, Attempt: attempt, Err: err}
	}
	return res.QP, nil
}

// opened ends a set-up.
func (p *Pool) opened(q *pooled, qp *iwarp.QP, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := q.peer
	r.opening--
	q.qp = qp
	switch wanted := q.state == qpOpening; {
	case err != nil:
		p.move(q, qpGone)
		if wanted {
			p.failed(r, q.failures, err)
		}
		if hopeless(err) {
			r.failures = 0
			p.refuse(r, err)
		}
		p.served()
	case !wanted:
		p.end(q, true)
	default:
		r.failures, r.err = 0, nil
		p.move(q, qpIdle)
	}
	p.serve(r)
}

// lease leases a QP that is usable.
func (p *Pool) lease(q *pooled) *Lease {
	if q.state == qpIdle {
		p.move(q, qpLeased)
	}
	q.users++
	return &Lease{pool: p, of: q}
}

// broken stops leasing a QP that has failed.
func (p *Pool) broken(q *pooled, err error) {
	p.failed(q.peer, q.failures, err)
	if q.state == qpIdle || !q.works() {
		p.end(q, true) // the holders of leases see that it has ended
		return
	}
	p.move(q, qpBroken)
}

// retire stops leasing a QP.
func (p *Pool) retire(q *pooled) {
	switch q.state {
	case qpOpening:
		p.move(q, qpCalledOff)
		q.cancel()
	case qpIdle:
		p.end(q, false)
	case qpLeased:
		p.move(q, qpRetired)
	default: // already retired
	}
}

// end closes or aborts a QP that is not leased any more, or must not stay leased.
func (p *Pool) end(q *pooled, abort bool) {
	p.move(q, qpClosing)
	p.all.Go(func() {
		var err error
		if !abort {
			err = q.qp.Close()
		}
		if abort || err != nil {
			_ = q.qp.Abort()
		}
		<-q.qp.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		q.cut = cmp.Or(q.cut, err)
		p.move(q, qpGone)
		p.served()
		p.serve(q.peer)
	})
}

// works reports whether a QP can still be used.
func (q *pooled) works() bool { return q.qp.State() == iwarp.StateRTS }

// sweepLater starts the timer that closes QPs when they have been idle for too long.
func (p *Pool) sweepLater() {
	oldest := p.idle.Front()
	if p.cfg.Idle == 0 || p.closed || p.sweeper != nil || oldest == nil {
		return
	}
	p.sweeper = time.AfterFunc(time.Until(oldest.Value.(*pooled).since.Add(p.cfg.Idle)), p.sweep)
}

func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeper = nil
	if p.closed {
		return
	}
	for e := p.idle.Front(); e != nil; e = p.idle.Front() {
		q := e.Value.(*pooled)
		if time.Since(q.since) < p.cfg.Idle {
			break
		}
		p.end(q, false)
	}
	p.sweepLater()
}
