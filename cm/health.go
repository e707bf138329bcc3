package cm

import (
	"cmp"
	"slices"
	"time"
)

// A PeerHealth is what a [Pool] knows about a peer.
type PeerHealth struct {
	Network, Addr string
	QPs           int       // established QPs
	Leased        int       // leased QPs
	Err           error     // the last failure, if no set-up has succeeded after it
	Next          time.Time // when the next set-up may begin after that failure; in the past: at once
}

// Health returns the state of all peers with which the pool has QPs, for which a Get waits, or whose last
// set-up or QP failed, sorted by network and address. It also detects QPs that have ended unnoticed.
func (p *Pool) Health() []PeerHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []PeerHealth
	for _, r := range p.peers {
		h := PeerHealth{Network: r.network, Addr: r.addr}
		for _, q := range r.qps {
			if (q.state == qpIdle || q.state == qpLeased) && !q.works() {
				p.broken(q, endOf(q.qp))
			}
			switch q.state {
			case qpLeased, qpRetired, qpBroken:
				h.Leased++
				h.QPs++
			case qpIdle:
				h.QPs++
			default: // not established, or closing
			}
		}
		if h.Err = r.err; r.failures > 0 {
			h.Next = r.next
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b PeerHealth) int {
		return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Addr, b.Addr))
	})
	return all
}
