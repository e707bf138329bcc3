package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// This file is what the verbs do for the sake of Linux's siw alone.

// siwWait is how long a new connection waits for anything of the peer before wakeSIW sends.
const siwWait = 250 * time.Millisecond

// wakeSIW sends an empty RDMA Write if nothing has come from the peer some time after our
// ready-to-receive message.
//
// Linux's siw, as a responder, sends its Reply before it has made its socket tell it
// of data (siw_accept in siw_cm.c). What arrives in between stays unread until more
// arrives, so if we wait for the peer's application, which waits for its connection to
// be established, both wait for ever. To any other peer an empty Write means nothing.
func (qp *QP) wakeSIW() {
	time.AfterFunc(siwWait, func() {
		if qp.State() != StateRTS || qp.Stats().Received != (OpStats{}) {
			return
		}
		n, _ := qp.stream.Post(1, func(_ int, r *rdmap.Request) error {
			r.Kind, r.Tag = rdmap.KindWrite, siwWrite{}
			return nil
		})
		if n > 0 {
			qp.conn.Load().Post()
		}
	})
}

// A siwWrite is the Tag of that message. It makes no completion, and takes none of the
// slots that the user has: the stream has one more for it.
type siwWrite struct{}

// meaning is what a Terminate of the peer tells. It is the receiving goroutine's.
//
// Linux's siw has layer and type in the other order, and tells of an opcode that it does
// not know without any header by which the order could be found out (see
// rdmap.ParseTerminate). Its 0/2/06 then reads 2/0/06, and there is such a code: an
// initiator says 2/0/06 or 2/0/07 in place of its first message, if the negotiation of
// set-up has failed (RFC 6581 section 9). A responder never does, nor does a peer that has sent
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
