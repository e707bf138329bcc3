package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/rdmap"
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
