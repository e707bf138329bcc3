package cm

import (
	"container/list"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
)

type peerName struct{ network, addr string }

// A poolPeer is what a pool knows of a peer, guarded by the pool's mutex.
type poolPeer struct {
	peerName
	qps      []*pooled     // in each state but qpGone
	opening  int           // of them
	waiting  []waiter      // in order
	starving *list.Element // of Pool.starved; nil: it is not

	failures int       // in a row
	err      error     // the last of them
	next     time.Time // when a set-up may begin
	timer    *time.Timer
}

// peer returns the peer of a name.
func (p *Pool) peer(n peerName) *poolPeer {
	r := p.peers[n]
	if r == nil {
		if len(p.peers) >= 2*p.cfg.Max {
			p.forgetFailures()
		}
		r = &poolPeer{peerName: n}
		p.peers[n] = r
	}
	return r
}

// forget ends what is known of a peer, if that is nothing.
func (p *Pool) forget(r *poolPeer) {
	if len(r.qps)+len(r.waiting)+r.failures == 0 && p.peers[r.peerName] == r {
		delete(p.peers, r.peerName)
	}
}

// forgetFailures bounds the memory for peers that have failed and are not asked for.
func (p *Pool) forgetFailures() {
	for n, r := range p.peers {
		if len(r.qps)+len(r.waiting) == 0 {
			if r.timer != nil {
				r.timer.Stop()
			}
			delete(p.peers, n)
		}
	}
}

// remove takes a QP off the list.
func (r *poolPeer) remove(q *pooled) {
	i := slices.Index(r.qps, q)
	r.qps = slices.Delete(r.qps, i, i+1)
}

// usable returns a QP that may be handed out, nil if there is none. It finds those that have
// ended.
func (p *Pool) usable(r *poolPeer) *pooled {
	for _, q := range r.qps {
		if q.state != qpIdle && (q.state != qpLeased || p.cfg.PerPeer > 1) {
			continue
		}
		if q.works() {
			return q
		}
		p.broken(q, endOf(q.qp))
	}
	return nil
}

// endOf is why a QP has ended.
func endOf(qp *iwarp.QP) error {
	if err := qp.Err(); err != nil {
		return err
	}
	return errPeerClosed
}

var errPeerClosed = errors.New("cm: the peer has closed the connection")

// failed notes a failure, the first one or one more after before.
func (p *Pool) failed(r *poolPeer, before int, err error) {
	r.failures, r.err = max(r.failures, before)+1, err
	r.next = time.Now().Add(p.cfg.Backoff(r.failures))
}

// hopeless tells whether a set-up would fail in the same way for ever.
func hopeless(err error) bool {
	var (
		address *net.AddrError
		unknown net.UnknownNetworkError
		parse   *net.ParseError
		lookup  *net.DNSError
	)
	service := errors.As(err, &lookup) && lookup.IsNotFound && strings.Contains(lookup.Name, "/") // tcp/name, and no host
	return service || errors.As(err, &address) || errors.As(err, &unknown) || errors.As(err, &parse) || errors.Is(err, iwarp.ErrUnsupported)
}

// refuse fails all Gets that wait for a peer.
func (p *Pool) refuse(r *poolPeer, err error) {
	for _, w := range r.waiting {
		w <- grant{err: err}
	}
	r.waiting = nil
}

// serve hands QPs of a peer to those that wait for one, and begins the set-ups that are wanting.
// It is called whenever something has changed for the peer.
func (p *Pool) serve(r *poolPeer) {
	for len(r.waiting) > 0 {
		q := p.usable(r)
		if q == nil {
			break
		}
		w := r.waiting[0]
		r.waiting = slices.Delete(r.waiting, 0, 1)
		w <- grant{lease: p.lease(q)}
	}
	p.satisfied(r)
	if !p.closed {
		p.openMore(r)
	}
	p.closeIdle()
	p.forget(r)
}

// openMore begins the set-ups that the waiting Gets need, as far as the limits allow.
func (p *Pool) openMore(r *poolPeer) {
	for r.opening < len(r.waiting) && len(r.qps) < p.cfg.PerPeer {
		if r.failures > 0 && r.opening > 0 {
			return // one attempt tells for all
		}
		if wait := time.Until(r.next); r.failures > 0 && wait > 0 {
			p.serveLater(r, wait)
			return
		}
		if p.total >= p.cfg.Max {
			if r.starving == nil {
				r.starving = p.starved.PushBack(r)
			}
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

// satisfied takes a peer off the list of the starved ones if no Get waits for it.
func (p *Pool) satisfied(r *poolPeer) {
	if r.starving != nil && len(r.waiting) == 0 {
		p.starved.Remove(r.starving)
		r.starving = nil
	}
}

// closeIdle closes idle QPs for peers that can have none otherwise.
func (p *Pool) closeIdle() {
	for p.closing < p.starved.Len() && p.idle.Len() > 0 {
		p.end(p.idle.Front().Value.(*pooled), false)
	}
}

// served lets peers that have waited for it have the QP that there is one less of.
func (p *Pool) served() {
	for p.total < p.cfg.Max && p.starved.Len() > 0 {
		r := p.starved.Remove(p.starved.Front()).(*poolPeer)
		r.starving = nil
		p.serve(r)
	}
}
