package iwarp

import (
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/rdmap"
)

// Traffic counts messages, and octets of payload.
type Traffic = rdmap.Traffic

// QPStats counts what a QP has sent and received, by kind of message. Received
// octets are counted as they are placed, messages when they are complete.
type QPStats struct {
	// Path names how the connection is driven: "raw TCP", by system calls of the library's own;
	// "net.Conn (*net.TCPConn)", or another type, through the methods of that (see
	// Config.PlainIO); "TLS"; "pipe"; "sctp" or "sctp+udp".
	Path string

	Sent, Received OpStats
	// ReceiveWaits is how often reading stopped because a message found no receive
	// posted (see QPConfig.RNRWait).
	ReceiveWaits uint64

	// CommitsServed is how many Commits of the peer were valid, and CommitsFailed how many
	// of those had a status other than 0. CommitsNotDurable counts their regions that
	// nothing makes durable.
	CommitsServed, CommitsFailed, CommitsNotDurable uint64
	// SharedTaken is how many receives messages of the peer have taken from the SRQ,
	// SharedHeld how many of them are occupied still: the completion has not been polled.
	SharedTaken uint64
	SharedHeld  int
}

// OpStats is one direction of QPStats.
type OpStats struct {
	Send         Traffic // all four kinds of Send
	RDMAWrite    Traffic
	ReadRequest  Traffic // RDMA Reads asked for
	ReadResponse Traffic // the data of RDMA Reads
	Terminate    Traffic

	Immediate      Traffic // both kinds of Immediate Data, also that behind an RDMA Write
	AtomicRequest  Traffic
	AtomicResponse Traffic

	CommitRequest  Traffic
	CommitResponse Traffic
}

// Stats returns the counters of the QP, also after its end.
func (qp *QP) Stats() QPStats {
	if qp.conn.Load() == nil {
		return QPStats{}
	}
	s := qp.stream.Stats()
	stats := QPStats{Path: qp.llp.Path(), Sent: opStats(&s.Out), Received: opStats(&s.In), ReceiveWaits: qp.conn.Load().ReceiveWaits()}
	if qp.cfg.SRQ != nil {
		stats.SharedTaken, stats.SharedHeld = qp.shared.taken.Load(), qp.recvSlots.Used()
	}
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
