package iwarp

import (
	"iter"
	"maps"
	"slices"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/tally"
	"github.com/goiwarp/iwarp/transport"
)

// Traffic counts messages, and octets of payload.
type Traffic = counters.Traffic

// QPStats counts what a QP has sent and received, by kind of message.
type QPStats = counters.QP

// OpStats counts one direction of QPStats.
type OpStats = counters.Ops

// RNICStats counts what an RNIC and all of its QPs have done, including QPs that have ended.
type RNICStats = counters.RNIC

// SRQStats counts the receives of an SRQ.
type SRQStats = counters.SRQ

// CQStats counts the completions of a CQ.
type CQStats = counters.CQ

// TCPStats is what the kernel reports about the TCP connection of a QP.
type TCPStats = counters.TCP

// Stats returns the counters of the QP. It may be called after the end of the QP.
func (qp *QP) Stats() QPStats {
	if qp.conn.Load() == nil {
		return QPStats{}
	}
	s := qp.stream.Stats()
	stats := QPStats{Path: qp.llp.Path(), Sent: tally.Ops(&s.Out), Received: tally.Ops(&s.In), ReceiveWaits: qp.conn.Load().ReceiveWaits()}
	stats.SendQueued = qp.sendSlots.Used()
	if qp.cfg.SRQ != nil {
		stats.SharedTaken, stats.SharedHeld = qp.shared.taken.Load(), qp.recvSlots.Used()
	} else {
		stats.RecvQueued = qp.recvSlots.Used()
	}
	w := qp.window.Waits()
	stats.ReadWaits, stats.ReadWaitTime = w.Count, w.Time
	c := &qp.commits.stats
	stats.CommitsServed, stats.CommitsFailed, stats.CommitsNotDurable = c.Commits.Load(), c.Failed.Load(), c.NotDurable.Load()
	return stats
}

// TCP asks the kernel about the TCP connection of the QP, at the cost of a system call. It reports false if the
// QP has no TCP connection, or no longer has one, and on systems other than Linux. Retransmits is kept after the
// end, and never decreases.
func (qp *QP) TCP() (TCPStats, bool) {
	if qp.conn.Load() == nil {
		return TCPStats{}, false
	}
	qp.mu.Lock() // held while the kernel is asked, so that the latest answer is the one that is kept
	defer qp.mu.Unlock()
	i, ok := transport.InfoOf(qp.llp)
	if ok {
		qp.retransmits = uint32(i.Retransmits)
	}
	i.Retransmits = uint64(qp.retransmits)
	return TCPStats(i), ok
}

// QPs returns an iterator over the QPs that are established at the time of the call, in no particular order.
func (r *RNIC) QPs() iter.Seq[*QP] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(r.qps)))
}

// Stats returns the counters of the RNIC. It asks each QP, and the kernel about each TCP connection. With thousands of
// connections that takes milliseconds, but delays no QP.
func (r *RNIC) Stats() *RNICStats {
	r.mu.Lock()
	stats, qps := r.tally.Snapshot(), slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	tally.AddLive(stats, len(qps), func(i int, l *tally.Live) {
		l.Counts = qps[i].Stats()
		l.TCP, l.HasTCP = qps[i].TCP()
	})
	stats.EventsDropped, stats.Pending = r.EventsDropped(), r.setups.Pending()
	stats.Refused, stats.Failed = r.setups.Outcomes()
	return stats
}

// left removes a QP that has ended, and reports that by e, if the peer is known. Both are one step: RNIC.Close, which
// waits for the QPs that it finds, closes the channel of Events after it.
func (r *RNIC) left(qp *QP, how counters.End, e Event, known bool) {
	counts, term := qp.Stats(), qp.Terminated()
	tcp, _ := qp.TCP()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.qps, qp)
	r.tally.Ended(tally.Ending{Counts: &counts, How: how, Retransmits: tcp.Retransmits})
	if term != nil {
		r.tally.Terminated(term.code(), term.Remote)
	}
	if known {
		r.raise(e)
	}
	close(qp.done)
}
