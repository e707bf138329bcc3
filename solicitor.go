package iwarp

import (
	"github.com/goiwarp/iwarp/internal/soliciting"
	"github.com/goiwarp/iwarp/solicit"
)

// A Solicitor bounds the octets that the RDMA Reads of its QPs have outstanding, so that they do
// not all arrive at the same time. QPConfig.Solicitor assigns it to a QP. Share one among the QPs
// of a process, of any RNIC, or among those that share a network port.
//
// An RDMA Read of at least one octet waits until its octets fit in the window. Only then is its
// Read Request sent; on the wire nothing changes. While a Read waits, so do the work requests behind
// it on its QP, as they do while the ORD is used up: put work that must not wait on another QP.
// SendWR.Class says how urgent a Read is. Atomic operations, Commits and empty Reads need no window,
// and what peers send unasked is not bounded.
//
// A Read is never split: a Read that is longer than the window can become is refused when it is
// posted, with an error that matches ErrLimit. [RemoteMemory.ReadAt] requests 64 KiB at a time.
//
// Without a dispatch timeout (solicit.Config) a Read waits without limit. With one, a Read
// that waits longer completes with StatusTimeout and ErrDispatchTimeout: nothing was sent, the QP
// stays in StateRTS, and later work requests go on. The time counts from when nothing but the
// window keeps the Read from starting.
//
// An outstanding Read holds its part of the window until its response has arrived, or its QP has
// ended. While a message of the peer waits for a receive (QPConfig.RNRWait), the responses behind
// it are not read, and the Reads of the other QPs may wait as long.
//
// A goroutine that receives for one QP of a Solicitor may send for another one. It does not wait for
// the network, but a slow Buffer that is the source of an RDMA Write then delays both QPs.
type Solicitor struct{ core *soliciting.Solicitor }

// NewSolicitor returns a Solicitor. If cfg is not valid, no QP can be created with it: see solicit.Config.Check.
// At most one Read of each QP waits. While MaxQueue Reads wait, a further one completes at once, with StatusTimeout;
// a MaxQueue of 0 sets no bound.
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
