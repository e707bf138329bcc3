package cm

import "github.com/goiwarp/iwarp"

// A Lease is the right to use a QP of a [Pool], alone, or with others where PoolConfig.PerPeer is
// 1.
type Lease struct {
	pool     *Pool
	of       *pooled
	released bool // guarded by the pool's mutex
}

// QP returns the QP. It is the pool's: do not close it.
func (l *Lease) QP() *iwarp.QP { return l.of.qp }

// Release gives the QP back. If broken is true, or the QP has ended, it is not handed out again,
// and is aborted at the last Release; the next Get sets up another one. No work of the
// caller's may be outstanding on a QP that is not broken. Another Release does nothing.
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
