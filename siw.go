package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// This file has the workarounds for Linux's siw.

// siwWaits are how long a new connection waits for data of the peer before each Write of wakeSIW.
var siwWaits = [...]time.Duration{250 * time.Millisecond, time.Second}

// wakeSIW sends an empty RDMA Write if nothing has arrived from the peer some time after its
// Reply, and another one if that has not helped. nth counts them from 0 on.
//
// As a responder, Linux's siw sends its Reply before it enables the notifications of its
// socket (siw_accept in siw_cm.c). Data that arrives in between stays unread until more
// arrives: our ready-to-receive message, or the first message of our application. If our
// application then waits for the peer's, both wait for ever. Where nothing was sent, nothing is
// unread. For any other peer an empty Write has no effect. The second Write is for a machine so
// busy that the first one has come too early as well.
func (qp *QP) wakeSIW(nth int) {
	qp.conn.Load().After(siwWaits[nth], func() {
		s := qp.Stats()
		if qp.State() != StateRTS || s.Received != (OpStats{}) || s.Sent == (OpStats{}) {
			return
		}
		n, _ := qp.stream.Post(1, func(_ int, r *rdmap.Request) error {
			r.Kind, r.Tag = rdmap.KindWrite, siwWrite{}
			return nil
		})
		if n > 0 {
			qp.conn.Load().Post()
		}
		if nth+1 < len(siwWaits) { // not when this Write completes: it may be behind a Read, which siw has not read
			qp.wakeSIW(nth + 1)
		}
	})
}

// A siwWrite is the Tag of these messages. They make no completion and use none of the user's
// slots: the stream has an extra slot for each.
type siwWrite struct{}

// meaning returns the code that a Terminate of the peer means. Only the receiving goroutine
// calls it.
//
// Linux's siw exchanges layer and type. For an opcode that it does not support it sends no
// header from which the order could be determined (see rdmap.ParseTerminate). Its 0/2/06 then
// reads 2/0/06, which is a valid code: an initiator sends 2/0/06 or 2/0/07 instead of its
// first message, if the negotiation of set-up has failed (RFC 6581 section 9). A responder
// never sends these codes, and neither does a peer that has sent something else before: from
// them they mean 0/2/06 or 0/2/07.
func (qp *QP) meaning(t *rdmap.Terminate) transport.Code {
	if t.Code != transport.MPAInsufficientIRD && t.Code != transport.MPANoRTR {
		return t.Code
	}
	if !qp.terms.Initiator && qpconn.NothingButTerminate(qp.stream.Stats()) {
		return t.Code
	}
	return transport.MakeCode(t.Code.Type(), t.Code.Layer(), t.Code.Code())
}
