package iwarp

import (
	"github.com/goiwarp/iwarp/internal/soliciting"
	"github.com/goiwarp/iwarp/solicit"
)

// A Solicitor bounds the octets that the RDMA Reads of its QPs have under way, so that they do not
// all come at the same time. A QP has one by QPConfig.Solicitor. Share one among the QPs of a
// process, of any RNIC, or among those that share a network port.
//
// An RDMA Read with octets waits until they fit in the window, and only then is its Read Request
// sent; on the wire nothing changes. While it waits, so do the work requests behind it on its QP,
// as they do while the ORD is used up: put on another QP what must not wait. SendWR.Class says how
// urgent a Read is. Atomic operations, Commits and empty Reads need no window, and what peers send
// without being asked is not bounded by it.
//
// A Read is never split: one that is longer than the window can be is refused when it is posted,
// with an error that matches ErrLimit. [RemoteMemory.ReadAt] asks for 64 KiB at a time.
//
// Without a dispatch timeout (solicit.Config) a Read waits as long as it takes. With one, a Read
// that waits longer completes with StatusTimeout and ErrDispatchTimeout: nothing was sent, the QP
// stays in StateRTS, and later work requests go on. The time counts from when nothing but the
// window keeps the Read from starting.
//
// A Read that is under way keeps its part of the window until its response has come, or its QP has
// ended. Where the peer may send messages for which no receive is posted (QPConfig.RNRWait), the
// responses behind them are not read meanwhile, and the Reads of the other QPs may wait as long.
//
// A goroutine that receives for one QP of a Solicitor may send for another one. It does not wait for
// the network, but a Buffer that is slow as the source of an RDMA Write then delays both QPs.
type Solicitor struct{ core *soliciting.Solicitor }

// NewSolicitor returns a Solicitor. If cfg is not valid, a QP with it cannot be made: see solicit.Config.Check. Each QP waits with
// one Read. Where MaxQueue of them wait a further one completes at once, with StatusTimeout; 0 is no bound.
func NewSolicitor(cfg solicit.Config) *Solicitor { return &Solicitor{soliciting.New(cfg)} }

// Stats returns the counters of the window.
func (s *Solicitor) Stats() solicit.Stats { return s.core.Stats() }

// Close ends the timer of the Solicitor. It fails while QPs use it.
func (s *Solicitor) Close() error { return s.core.Close() }

// joinSolicitor makes qp a user of its Solicitor, if it has one.
func joinSolicitor(qp *QP) (err error) {
	if qp.cfg.Solicitor == nil {
		return nil
	}
	post := func() { qp.conn.Load().Post() }
	qp.window, err = qp.cfg.Solicitor.core.Join(post, qp.rnic.tasks.Starter(post), ErrLimit)
	return err
}
