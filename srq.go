package iwarp

import (
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/lru"
	"github.com/goiwarp/iwarp/internal/postqueue"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/stag"
)

// An SRQ is a shared receive queue: it holds receives for the messages of several QPs. The
// first message that arrives on any QP with this QPConfig.SRQ takes the oldest receive, which
// then belongs to that QP: it completes on the QP's RecvCQ, in the order of that peer's
// messages. An SRQ is thus also a way to post one buffer on several QPs at once (RFC 4296
// section 2.1.2). There is no order between QPs.
//
// SGEs are checked against the PD of the SRQ; everything else in a message is checked against
// the PD of its QP (draft-hilland-rddp-verbs section 6.3.5). A QP that ends completes the
// receives that it has taken, and leaves the others alone.
//
// QPConfig.RecvDepth limits how many receives one peer can occupy; QPStats reports the number.
// A peer that sends faster than the application polls must wait, as if no receive were posted,
// and does not take the receives of others (RFC 5042 section 6.4.3.1). See also
// [QP.SetRecvLimit].
type SRQ struct {
	rnic  *RNIC
	pd    *PD
	depth int

	mu      lockorder.Mutex[lockorder.SRQ]
	recvs   ring.Queue[recv]
	limit   int // fewer receives than this raise the event; 0: not armed
	qps     int // QPs that use the SRQ
	closed  bool
	dropped uint64                  // receives, by Close
	starved *lru.Map[*QP, struct{}] // QPs whose messages wait for a receive
}

var (
	errSRQClosed = fmt.Errorf("iwarp: SRQ closed: %w", net.ErrClosed)
	errHasSRQ    = errors.New("iwarp: the receives of this QP come from its SRQ")
	errHasNoSRQ  = errors.New("iwarp: the QP has no SRQ")
)

// CreateSRQ creates a shared receive queue of at most depth receives. depth may be up to
// Limits.MaxQueueDepth; memory is allocated as the queue fills.
func (pd *PD) CreateSRQ(depth int) (*SRQ, error) {
	r := pd.rnic
	if err := quota.Depth(ErrLimit, "SRQ", depth, r.limits.MaxQueueDepth); err != nil {
		return nil, err
	}
	if err := pd.use(quota.SharedReceiveQueues); err != nil {
		return nil, err
	}
	if err := r.take(&r.used.srq, r.limits.MaxSRQ, "SRQs"); err != nil {
		pd.users.Remove(quota.SharedReceiveQueues)
		return nil, err
	}
	return &SRQ{rnic: r, pd: pd, depth: depth, starved: lru.New[*QP, struct{}](math.MaxInt)}, nil
}

// PostRecv posts receives for messages of all peers, in order. A slot becomes free when a
// message takes its receive. Errors are like those of [QP.PostSend].
func (s *SRQ) PostRecv(wrs ...RecvWR) error {
	s.mu.Lock()
	n, err := s.post(wrs)
	s.mu.Unlock()
	s.feed(n)
	if err != nil {
		return &PostError{N: n, Err: err}
	}
	return nil
}

// post queues receives until one is refused, and returns how many it has queued. mu is held.
func (s *SRQ) post(wrs []RecvWR) (n int, err error) {
	if s.closed {
		return 0, errSRQClosed
	}
	for i := range wrs {
		if s.recvs.Len() == s.depth {
			return i, fmt.Errorf("%w: %d receives", ErrQueueFull, s.depth)
		}
		r := s.recvs.Next(postqueue.Initial)
		if r.spans, _, err = s.pd.spans(r.spans[:0], wrs[i].Local, stag.LocalWrite, 0); err != nil {
			return i, err
		}
		r.id = wrs[i].ID
		s.recvs.Push()
	}
	return len(wrs), nil
}

// take moves the oldest receive to r, for qp, if there is one.
func (s *SRQ) take(qp *QP, r *recv) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recvs.Len() == 0 {
		return false
	}
	oldest := s.recvs.Take()
	r.id, r.helper, r.spans = oldest.id, nil, append(r.spans[:0], oldest.spans...)
	clear(oldest.spans)
	s.starved.Delete(qp) // it may still be there, if it was not resumed for this receive
	s.checkLimit()
	return true
}

// checkLimit raises the event, once for each arming, if fewer receives than the limit are left. mu
// is held.
func (s *SRQ) checkLimit() {
	if s.recvs.Len() < s.limit {
		s.limit = 0
		s.rnic.raise(Event{Kind: EventSRQLimit, SRQ: s})
	}
}

// SetLimit arms EventSRQLimit. The event is raised once, when fewer than n receives are left,
// which may be at once. Call SetLimit again to arm it again; 0 disarms it. A limit above the
// depth of the SRQ is refused (draft-hilland-rddp-verbs section 6.3.8).
func (s *SRQ) SetLimit(n int) error {
	if n < 0 || n > s.depth {
		return fmt.Errorf("iwarp: SRQ limit %d is not within 0..%d", n, s.depth)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errSRQClosed
	}
	s.limit = n
	s.checkLimit()
	return nil
}

// Stats returns the counters of the SRQ.
func (s *SRQ) Stats() SRQStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SRQStats{Posted: s.recvs.End, Taken: s.recvs.Oldest - s.dropped, Free: s.recvs.Len(), Depth: s.depth}
}

// offers reports whether there is a receive. If not, feed resumes qp in its turn, unless qp has ended:
// detach, which follows the end, may already have been called.
func (s *SRQ) offers(qp *QP) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.recvs.Len() > 0
	if !free && qp.conn.Load().Stage() < qpconn.Ended {
		s.starved.Put(qp, struct{}{})
	}
	return free
}

// feed resumes one waiting message for each of n receives, the one that has waited longest first. Resuming more
// would be useless, and with many QPs would cost more than the messages do. A QP that is ending takes no receive:
// it is skipped, and calls feed itself if it was resumed before. s may be nil.
func (s *SRQ) feed(n int) {
	for s != nil && n > 0 {
		qp := s.next()
		if qp == nil {
			return
		}
		if !qp.rq.HasEnded() && qp.conn.Load().Resume() {
			n--
		}
	}
}

// next removes from the list the QP whose message has waited longest. It returns nil if none waits, or no receive is left.
func (s *SRQ) next() (qp *QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recvs.Len() > 0 && s.starved.Len() > 0 {
		qp, _ = s.starved.Oldest()
		s.starved.Delete(qp)
	}
	return qp
}

// Close closes the SRQ. It fails while QPs use it, until their channel of [QP.Done] is closed. Receives that
// are still posted are dropped without a completion; their memory belongs to the caller again.
func (s *SRQ) Close() error {
	first, err := s.close()
	if first {
		s.rnic.used.srq.Give()
		s.pd.users.Remove(quota.SharedReceiveQueues)
	}
	return err
}

// close is Close, except that it does not release what the SRQ has taken from the RNIC and its
// PD. If first is true the caller must do that.
func (s *SRQ) close() (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, nil
	case s.qps > 0:
		return false, fmt.Errorf("iwarp: close SRQ: still in use by %d queue pairs", s.qps)
	}
	s.closed = true
	s.dropped = uint64(s.recvs.Len())
	s.recvs.Drop()
	return true, nil
}

// home returns the RNIC of the SRQ, or def if s is nil.
func (s *SRQ) home(def *RNIC) *RNIC {
	if s == nil {
		return def
	}
	return s.rnic
}

// attach counts a QP that uses s, which may be nil.
func (s *SRQ) attach() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errSRQClosed
	}
	s.qps++
	return nil
}

// detach reverts attach.
func (s *SRQ) detach(qp *QP) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.qps--
	s.starved.Delete(qp)
}
