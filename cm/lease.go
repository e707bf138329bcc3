package cm

import "github.com/goiwarp/iwarp"

// A Lease is the right to use a QP of a [Pool]: shared with others if PoolConfig.PerPeer is 1, and
// exclusive otherwise.
type Lease struct {
	pool     *Pool
	of       *pooled
	released bool // guarded by the pool's mutex
}

// QP returns the QP. It belongs to the pool: do not close it.
func (l *Lease) QP() *iwarp.QP { return l.of.qp }

// Release returns the QP to the pool. If broken is true, or the QP has ended, the pool does not lease
// it again and aborts it at the last Release; the next Get sets up another one. Unless broken is true,
// the caller must have no outstanding work requests on the QP. Another Release does nothing.
func (l *Lease) Release(broken bool) {
	p, q := l.pool, l.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	q.users--
	switch {
	case q.state == qpRetired && broken:
		p.move(q, qpBroken)
	case q.state != qpLeased:
	case broken:
		p.broken(q, errBroken)
	case !q.works():
		p.broken(q, endOf(q.qp))
	default:
		q.failures = 0
	}
	if q.users > 0 {
		return
	}
	switch q.state {
	case qpLeased:
		p.move(q, qpIdle)
	case qpRetired:
		p.end(q, false)
	case qpBroken:
		p.end(q, true)
	default: // Drain, or the end of the QP, has ended it
	}
	p.serve(q.peer)
}
