package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/rdmap"
)

// Traffic counts messages, and octets of payload.
type Traffic = rdmap.Traffic

// QPStats counts what a QP has sent and received, by kind of message. Received octets are
// counted when they are placed, received messages when they are complete.
type QPStats struct {
	// Path identifies how the connection performs its I/O: "raw TCP", by system calls of the
	// library's own; "net.Conn (*net.TCPConn)", or another type, by the methods of that type
	// (see Config.PlainIO); "TLS"; "pipe"; "sctp" or "sctp+udp".
	Path string

	Sent, Received OpStats
	// ReceiveWaits counts how often reading stopped because a message found no receive posted
	// (see QPConfig.RNRWait).
	ReceiveWaits uint64

	// ReadWaits counts the RDMA Reads that have waited for the window of QPConfig.Solicitor, and
	// ReadWaitTime is how long they have waited.
	ReadWaits    uint64
	ReadWaitTime time.Duration

	// CommitsServed counts the valid Commits of the peer, and CommitsFailed those of them with
	// a status other than 0. CommitsNotDurable counts their regions without a durable backing.
	CommitsServed, CommitsFailed, CommitsNotDurable uint64
	// SharedTaken counts the receives that messages of the peer have taken from the SRQ.
	// SharedHeld is the number of them that are still occupied because their completion has
	// not been polled.
	SharedTaken uint64
	SharedHeld  int
}

// OpStats counts one direction of QPStats.
type OpStats struct {
	Send         Traffic // all four kinds of Send
	RDMAWrite    Traffic
	ReadRequest  Traffic // RDMA Read Requests
	ReadResponse Traffic // RDMA Read Responses
	Terminate    Traffic

	Immediate      Traffic // both kinds of Immediate Data, including that after an RDMA Write
	AtomicRequest  Traffic
	AtomicResponse Traffic

	CommitRequest  Traffic
	CommitResponse Traffic
}

// Stats returns the counters of the QP. It may be called after the end of the QP.
func (qp *QP) Stats() QPStats {
	if qp.conn.Load() == nil {
		return QPStats{}
	}
	s := qp.stream.Stats()
	stats := QPStats{Path: qp.llp.Path(), Sent: opStats(&s.Out), Received: opStats(&s.In), ReceiveWaits: qp.conn.Load().ReceiveWaits()}
	if qp.cfg.SRQ != nil {
		stats.SharedTaken, stats.SharedHeld = qp.shared.taken.Load(), qp.recvSlots.Used()
	}
	w := qp.window.Waits()
	stats.ReadWaits, stats.ReadWaitTime = w.Count, w.Time
	c := &qp.commits.stats
	stats.CommitsServed, stats.CommitsFailed, stats.CommitsNotDurable = c.Commits.Load(), c.Failed.Load(), c.NotDurable.Load()
	return stats
}

func opStats(t *[16]rdmap.Traffic) OpStats {
	sum := func(ops ...rdmap.Opcode) (n Traffic) {
		for _, op := range ops {
			n.Messages += t[op].Messages
			n.Octets += t[op].Octets
		}
		return n
	}
	return OpStats{
		Send:         sum(rdmap.OpSend, rdmap.OpSendInvalidate, rdmap.OpSendSolicited, rdmap.OpSendSolicitedInvalidate),
		RDMAWrite:    t[rdmap.OpWrite],
		ReadRequest:  t[rdmap.OpReadRequest],
		ReadResponse: t[rdmap.OpReadResponse],
		Terminate:    t[rdmap.OpTerminate],

		Immediate:      sum(rdmap.OpImmediate, rdmap.OpImmediateSolicited),
		AtomicRequest:  t[rdmap.OpAtomicRequest],
		AtomicResponse: t[rdmap.OpAtomicResponse],

		CommitRequest:  t[commit.OpRequest],
		CommitResponse: t[commit.OpResponse],
	}
}
