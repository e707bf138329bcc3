package host

import (
	"context"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// completed handles one completion. Its error ends the queue.
func (q *queue) completed(wc *iwarp.WC) error {
	if wc.QP != q.qp {
		return nil // of an attempt to connect before
	}
	if wc.Status != iwarp.StatusSuccess {
		return wc.Err()
	}
	switch i := int(wc.ID & 0xffff); wc.ID >> 16 {
	case kindReceive:
		return q.received(i, wc)
	case kindSend:
		q.sent(&q.slots[i])
	}
	return nil
}

// sent notes that the capsule of a command belongs to the slot again.
func (q *queue) sent(s *slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	s.sent = true
	if s.busy && s.responded {
		q.end(s, s.err)
	}
}

// received handles a message of the target, which must be a response. The receive is posted again
// before the command ends, since the next command may be answered at once.
func (q *queue) received(i int, wc *iwarp.WC) error {
	cqe, err := capsule.ParseCQE(q.recvs[i*recvSize:][:wc.Len])
	if err != nil {
		return err
	}
	if err := q.postRecv(q.qp, i); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return nil
	}
	return q.responded(&cqe, wc.STag)
}

// responded ends the command that the response is for. Before that its region is made invalid, if
// the target has not done so: that of the response must be the one of the command.
func (q *queue) responded(cqe *capsule.CQE, invalidated stag.STag) error {
	i := int(cqe.CID & slotMask)
	if i >= len(q.slots) {
		return malformed("a response to command %#04x, which does not exist", cqe.CID)
	}
	s := &q.slots[i]
	switch {
	case !s.busy || s.responded || s.cid != cqe.CID:
		return malformed("a response to command %#04x, which is not outstanding", cqe.CID)
	case cqe.SQID != q.qid:
		return malformed("a response for queue %d on queue %d", cqe.SQID, q.qid)
	case invalidated != 0 && (!s.keyed || invalidated != s.stag()):
		return malformed("a response to command %#04x has invalidated %v of another one", cqe.CID, invalidated)
	}
	s.responded, s.cqe = true, *cqe
	if s.keyed {
		if invalidated == 0 {
			// It waits for no peer, but for octets that are being moved this moment.
			if err := s.mr.Invalidate(context.Background()); err != nil {
				return err
			}
		}
		if whole := s.window.detach(); !whole && cqe.Status.OK() {
			s.err = ErrShortData
		}
	}
	if s.sent {
		q.end(s, s.err)
	}
	return nil
}

// end ends a command for its sender. The mutex is held.
func (q *queue) end(s *slot, err error) {
	s.busy, s.err = false, err
	s.timer.Stop()
	if s.abandoned {
		q.giveBack(s)
		return
	}
	s.done <- struct{}{}
}

// expired ends the queue if the command in the slot is late. The timer may be that of a command
// before it.
func (q *queue) expired(s *slot) {
	q.mu.Lock()
	var err error
	if s.busy && s.timeout > 0 && !time.Now().Before(s.deadline) {
		err = timeoutError(s.opcode, q.qid, s.timeout)
	}
	q.mu.Unlock()
	if err != nil {
		q.fail(err)
	}
}
