package iwarp

import (
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// meaning is what a Terminate of the peer tells. It is the receiving goroutine's.
//
// Linux's siw has layer and type in the other order, and tells of an opcode that it does
// not know without any header by which the order could be found out (see
// rdmap.ParseTerminate). Its 0/2/06 then reads 2/0/06, and there is such a code: an
// initiator says 2/0/06 or 2/0/07 in place of its first message, if the negotiation of
// set-up has failed (RFC 6581 section 9). A responder never does, nor does who has sent
// something else before: they mean 0/2/06 or 0/2/07.
func (qp *QP) meaning(t *rdmap.Terminate) transport.Code {
	if t.Code != transport.MPAInsufficientIRD && t.Code != transport.MPANoRTR {
		return t.Code
	}
	qp.stream.BatchDone() // so that Stats knows all that came before
	before := qp.Stats().Received
	before.Terminate = Traffic{}
	if !qp.terms.Initiator && before == (OpStats{}) {
		return t.Code
	}
	return transport.MakeCode(t.Code.Type(), t.Code.Layer(), t.Code.Code())
}
