package host

import (
	"context"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// completed handles the completions of one poll. Its error ends the queue.
func (q *queue) completed(wcs []iwarp.WC) error {
	n, failed := q.receiveAgain(wcs)
	q.mu.Lock()
	defer q.mu.Unlock()
	lead := !q.posting && len(q.again) > 0
	q.posting = q.posting || lead // commands of the goroutines that are woken now are posted below
	err := q.endCommands(wcs[:n])
	if err == nil {
		err = failed
	}
	woken := len(q.ended) < len(q.again) // a response was for a goroutine that waits, and not for a Transfer
	q.callDone()
	if lead {
		q.postWoken(woken)
	}
	return err
}

// endCommands handles completions. The mutex is held.
func (q *queue) endCommands(wcs []iwarp.WC) error {
	for i := range wcs {
		if q.err != nil {
			return nil
		}
		if err := q.completedOne(&wcs[i], &q.cqes[i]); err != nil {
			return err
		}
	}
	return nil
}

// postWoken posts the commands that Transfers have started, and, if woken, those of goroutines that were woken a moment ago. The
// mutex must be held; postWoken releases it meanwhile.
func (q *queue) postWoken(woken bool) {
	if woken {
		q.yield()
	}
	q.postOut()
}

// receiveAgain takes the responses out of the receives, and posts the receives again before any command ends, since the next
// command may be answered at once. The first n completions can be handled; the error concerns those after them.
func (q *queue) receiveAgain(wcs []iwarp.WC) (n int, err error) {
	q.again, q.into = q.again[:0], q.into[:0]
	for i := range wcs {
		wc := &wcs[i]
		if wc.QP != q.qp || wc.Status != iwarp.StatusSuccess || wc.ID>>16 != kindReceive {
			continue
		}
		at := int(wc.ID&0xffff) * recvSize
		if q.cqes[i], err = capsule.ParseCQE(q.recvs[at:][:wc.Len]); err != nil {
			return i, err
		}
		q.into = append(q.into, q.recvMR.Slice(at, recvSize))
		q.again = append(q.again, iwarp.RecvWR{ID: wc.ID, Local: q.into[len(q.into)-1:]})
	}
	if len(q.again) > 0 {
		err = q.qp.PostRecv(q.again...)
	}
	return len(wcs), err
}

// completedOne handles a completion: of a response, with its contents. The mutex is held.
func (q *queue) completedOne(wc *iwarp.WC, cqe *capsule.CQE) error {
	if wc.QP != q.qp {
		return nil // from an earlier attempt to connect
	}
	if wc.Status != iwarp.StatusSuccess {
		return wc.Err()
	}
	switch i := int(wc.ID & 0xffff); wc.ID >> 16 {
	case kindReceive:
		return q.responded(cqe, wc.STag)
	case kindSend:
		q.sent(&q.slots[i])
	}
	return nil
}

// sent records that the capsule of a command belongs to the slot again. The mutex must be held.
func (q *queue) sent(s *slot) {
	switch s.phase {
	case posted:
		s.phase = sent
	case answered:
		q.end(s, s.err)
	default: // it was posted before the queue failed
	}
}

// responded ends the command that the response is for. First it invalidates the command's region, if the
// target has not done so: an STag that the response invalidates must be that of the command.
func (q *queue) responded(cqe *capsule.CQE, invalidated stag.STag) error {
	i := int(cqe.CID & slotMask)
	if i >= len(q.slots) {
		return malformed("a response to command %#04x, which does not exist", cqe.CID)
	}
	s := &q.slots[i]
	switch {
	case s.phase != posted && s.phase != sent || s.cid != cqe.CID:
		return malformed("a response to command %#04x, which is not outstanding", cqe.CID)
	case cqe.SQID != q.qid:
		return malformed("a response for queue %d on queue %d", cqe.SQID, q.qid)
	case invalidated != 0 && (!s.keyed || invalidated != s.stag()):
		return malformed("a response to command %#04x has invalidated %v of another one", cqe.CID, invalidated)
	}
	s.cqe = *cqe
	if s.keyed {
		if invalidated == 0 {
			// Invalidate does not wait for the peer, only for octets that are being moved at this moment.
			if err := s.mr.Invalidate(context.Background()); err != nil {
				return err
			}
		}
		if whole := s.window.detach(); !whole && cqe.Status.OK() {
			s.err = ErrShortData
		}
	}
	if s.phase == sent {
		q.end(s, s.err)
		return nil
	}
	s.phase = answered
	return nil
}

// end ends a command for its sender. The mutex is held.
func (q *queue) end(s *slot, err error) {
	s.phase, s.err = free, err
	q.busy--
	switch s.to {
	case toSender:
		s.done <- struct{}{}
	case toTransfer:
		q.over(s, err)
	case toNone:
		s.to = toSender
		q.giveBack(s)
	}
}

const (
	// mostLate is how late the timer may fire in a running process.
	mostLate = 100 * time.Millisecond
	// readFirst is how long a process that was stopped reads responses, before it declares commands late.
	readFirst = 100 * time.Millisecond
)

// expired ends the queue if a command is late, and otherwise waits for the next one that may be. If the timer itself is late, this process
// was stopped, and responses that arrived in time may still be unread: they are read first.
func (q *queue) expired() {
	q.mu.Lock()
	var err error
	now := time.Now()
	stopped := !q.due.IsZero() && now.Sub(q.due) > mostLate
	q.due = time.Time{}
	if stopped {
		q.watch(now.Add(readFirst), readFirst)
		q.mu.Unlock()
		return
	}
	for i := range q.slots {
		s := &q.slots[i]
		switch {
		case s.phase == free || s.timeout == 0:
		case now.Before(s.deadline):
			q.watch(s.deadline, s.deadline.Sub(now))
		default:
			err = timeoutError(s.opcode, q.qid, s.timeout)
		}
	}
	q.mu.Unlock()
	if err != nil {
		q.fail(err)
	}
}

// watch sets the timer, which calls expired, to a deadline that is left away, unless the timer is due earlier. The mutex must be held.
func (q *queue) watch(deadline time.Time, left time.Duration) {
	if q.due.IsZero() || deadline.Before(q.due) {
		q.due = deadline
		q.timer.Reset(left)
	}
}
