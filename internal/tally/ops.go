package tally

import (
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/rdmap"
)

// Ops are the counts of one direction of a stream, by kind of message.
func Ops(t *[16]rdmap.Traffic) counters.Ops {
	sum := func(ops ...rdmap.Opcode) (n rdmap.Traffic) {
		for _, op := range ops {
			n.Messages += t[op].Messages
			n.Octets += t[op].Octets
		}
		return n
	}
	return counters.Ops{
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
