package cm

import (
	"cmp"
	"container/list"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
)

type peerName struct{ network, addr string }

// A poolPeer is what a pool knows about a peer, guarded by the pool's mutex.
type poolPeer struct {
	peerName
	qps     []*pooled     // in any state but qpGone
	opening int           // of qps
	waiting []waiter      // in order
	queue   *list.List    // Pool.starved or Pool.wanting; nil: neither
	place   *list.Element // of queue
	since   time.Time     // of place

	failures int       // in a row
	err      error     // the last failure
	next     time.Time // when a set-up may begin
	timer    *time.Timer
}

// peer returns the peer of a name.
func (p *Pool) peer(n peerName) *poolPeer {
	r := p.peers[n]
	if r == nil {
		if len(p.peers)/2 >= max(p.cfg.Max, p.needed) { // so rarely that the cost per peer stays constant
			p.forgetFailures()
		}
		r = &poolPeer{peerName: n}
		p.peers[n] = r
	}
	return r
}

// forget removes a peer about which nothing is known.
func (p *Pool) forget(r *poolPeer) {
	if len(r.qps)+len(r.waiting)+r.failures == 0 && p.peers[r.peerName] == r {
		delete(p.peers, r.peerName)
	}
}

// forgetFailures bounds the memory for failed peers for which no Get waits.
func (p *Pool) forgetFailures() {
	for n, r := range p.peers {
		if len(r.qps)+len(r.waiting) == 0 {
			if r.timer != nil {
				r.timer.Stop()
			}
			delete(p.peers, n)
		}
	}
	p.needed = len(p.peers)
}

// remove removes a QP from the list.
func (r *poolPeer) remove(q *pooled) {
	i := slices.Index(r.qps, q)
	r.qps = slices.Delete(r.qps, i, i+1)
}

// usable returns a QP that may be leased to w, or nil if there is none. It also detects QPs that have
// ended, and retires one if it is another peer's turn.
func (p *Pool) usable(r *poolPeer, w *waiter) *pooled {
	for _, q := range r.qps {
		if q.state != qpIdle && (q.state != qpLeased || p.cfg.PerPeer > 1) {
			continue
		}
		switch {
		case !q.works():
			p.broken(q, endOf(q.qp))
		case p.yields(w):
			p.yielded = time.Now()
			p.retire(q)
		default:
			return q
		}
	}
	return nil
}

// idleWait is how long a peer waits for a QP of another peer to become idle.
const idleWait = 100 * time.Millisecond

// yields reports whether a QP is not leased to w, but makes room for a peer that has no QP, and has waited since before w
// came, and for idleWait. A QP that was retired for this may stay leased for long: after idleWait another one is retired.
func (p *Pool) yields(w *waiter) bool {
	e := p.starved.Front()
	if e == nil {
		return false
	}
	first := e.Value.(*poolPeer)
	return first.since.Before(w.since) && time.Since(first.since) >= idleWait &&
		(p.closing+p.retired < p.starved.Len() || time.Since(p.yielded) >= idleWait)
}

// endOf returns why a QP has ended.
func endOf(qp *iwarp.QP) error {
	if err := qp.Err(); err != nil {
		return err
	}
	return errPeerClosed
}

var errPeerClosed = errors.New("cm: the peer has closed the connection")

// failed notes a failure that follows before earlier ones. Failures of QPs that existed, or were set up, at the same time
// do not count as consecutive.
func (p *Pool) failed(r *poolPeer, before int, err error) {
	r.failures, r.err = max(r.failures, before+1), err
	r.next = time.Now().Add(p.cfg.Backoff(r.failures))
}

// hopeless reports whether every further set-up would fail in the same way.
func hopeless(err error) bool {
	var (
		address *net.AddrError
		unknown net.UnknownNetworkError
		parse   *net.ParseError
		lookup  *net.DNSError
	)
	service := errors.As(err, &lookup) && lookup.IsNotFound && strings.Contains(lookup.Name, "/") // tcp/name, not a host
	var setup *SetupError
	closed := errors.As(err, &setup) && setup.Stage == StageQP && errors.Is(err, net.ErrClosed) // the RNIC, or an object that the QPs share
	return closed || service || errors.As(err, &address) || errors.As(err, &unknown) || errors.As(err, &parse) || errors.Is(err, iwarp.ErrUnsupported)
}

// refuse fails all Gets that wait for a peer.
func (p *Pool) refuse(r *poolPeer, err error) {
	for _, w := range r.waiting {
		w.answer <- grant{err: err}
	}
	r.waiting = nil
}

// serve leases QPs of a peer to the Gets that wait for one, and begins the set-ups that are missing.
// It is called whenever something has changed for the peer.
func (p *Pool) serve(r *poolPeer) {
	for len(r.waiting) > 0 {
		w := r.waiting[0]
		q := p.usable(r, &w)
		if q == nil {
			break
		}
		r.waiting[0] = waiter{}
		r.waiting = r.waiting[1:] // without moving the others, of which there may be many
		w.answer <- grant{lease: p.lease(q)}
	}
	p.satisfied(r)
	if !p.closed {
		p.openMore(r)
	}
	p.closeIdle()
	p.forget(r)
}

// openMore begins as many of the set-ups that the waiting Gets need as the limits allow.
func (p *Pool) openMore(r *poolPeer) {
	for r.opening < len(r.waiting) && len(r.qps) < p.cfg.PerPeer {
		if r.failures > 0 && r.opening > 0 {
			return // one attempt at a time is enough after a failure
		}
		if wait := time.Until(r.next); r.failures > 0 && wait > 0 {
			p.serveLater(r, wait)
			return
		}
		if p.total >= p.cfg.Max {
			p.enqueue(r)
			return
		}
		p.open(r)
	}
}

// serveLater serves the peer again when its next set-up may begin.
func (p *Pool) serveLater(r *poolPeer, wait time.Duration) {
	if r.timer != nil {
		return
	}
	r.timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.timer = nil
		if !p.closed {
			p.serve(r)
		}
	})
}

// enqueue notes that a peer waits until Pool.total is below Max.
func (p *Pool) enqueue(r *poolPeer) {
	to := &p.wanting
	if len(r.qps) == 0 {
		to = &p.starved
	}
	if r.queue != to {
		p.unqueue(r)
		r.queue, r.place, r.since = to, to.PushBack(r), time.Now()
	}
}

// satisfied removes a peer from its queue if no Get waits for it.
func (p *Pool) satisfied(r *poolPeer) {
	if len(r.waiting) == 0 {
		p.unqueue(r)
	}
}

func (p *Pool) unqueue(r *poolPeer) {
	if r.queue != nil {
		r.queue.Remove(r.place)
		r.queue, r.place = nil, nil
	}
}

// closeIdle closes idle QPs to make room for the peers in the queues.
func (p *Pool) closeIdle() {
	for p.closing < p.starved.Len()+p.wanting.Len() && p.idle.Len() > 0 {
		p.end(p.idle.Front().Value.(*pooled), false)
	}
}

// served serves peers that wait in the queues, while there are fewer than Max QPs.
func (p *Pool) served() {
	for p.total < p.cfg.Max {
		e := cmp.Or(p.starved.Front(), p.wanting.Front())
		if e == nil {
			return
		}
		r := e.Value.(*poolPeer)
		p.unqueue(r)
		p.serve(r)
	}
}
