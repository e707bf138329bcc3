package iwarp

import (
	"context"
	"fmt"
	"iter"
	"net"
	"slices"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/internal/slots"
	"github.com/goiwarp/iwarp/transport"
)

// A CQ is a completion queue. Work requests of its QPs complete here; those of one queue
// complete in the order in which they were posted. Any number of goroutines may poll and wait.
//
// A CQ should have an entry for every work request that its QPs can have outstanding,
// unsignaled ones included, because an error completes those too (RFC 5042 section 6.4.3.2).
// That is the sum of their SendDepth and RecvDepth, with or without an SRQ: a slot of a queue
// becomes free only when its completion has been polled. Depths that QPConfig sets explicitly
// are reserved in the CQ: a QP for which too few entries are left is refused with
// ErrCQTooSmall, and so is a Resize below the sum of the reservations. Default depths reserve
// nothing; the program must then not post more than the CQ can hold. A completion that finds
// the CQ full is lost, which raises EventCQOverflow and terminates the QP. Completions of QPs
// that have ended occupy entries until they are polled; reservations do not account for them.
//
// A CQ is closed by Close or by the end of its RNIC. The CQ that a QP creates for itself (see
// [QP.SendCQ]) is closed at the end of that QP. Completions on a closed CQ can still be
// polled.
type CQ struct {
	rnic    *RNIC
	depth   int
	counted bool // counts against Limits.MaxCQ; false for a QP's own CQ

	mu         lockorder.Mutex[lockorder.CQ]
	wcs        ring.Queue[WC]
	solicited  int // entries that WaitSolicited waits for
	qps        int // attached queues
	needed     int // sum of the depths that were set explicitly
	sole       *QP // the QP that all queues belong to; nil if there are several
	overflowed bool
	closed     bool
	signaled   bool        // the next wait returns at once
	waiters    []*cqWaiter // parked, the oldest first
	waits      qpconn.Plan // SetBusyPoll, SetWaitMode
}

const cqInitial = 16

// CreateCQ creates a completion queue with depth entries, from 1 to Limits.MaxCQDepth. It fails with an
// error that matches ErrLimit, or net.ErrClosed after [RNIC.Close], which also closes all CQs.
func (r *RNIC) CreateCQ(depth int) (*CQ, error) {
	if err := quota.Depth(ErrLimit, "CQ", depth, r.limits.MaxCQDepth); err != nil {
		return nil, err
	}
	if err := r.take(&r.used.cq, r.limits.MaxCQ, "CQs"); err != nil {
		return nil, err
	}
	cq := newCQ(r, depth)
	cq.counted = true
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == rnicClosed {
		r.used.cq.Give()
		return nil, errRNICClosed
	}
	r.cqs[cq] = struct{}{} // the end of the RNIC closes it
	return cq, nil
}

var errCQClosed = fmt.Errorf("iwarp: CQ closed: %w", net.ErrClosed)

// newCQ creates a CQ that counts against no limit, for a QP whose configuration names none.
func newCQ(r *RNIC, depth int) *CQ {
	return &CQ{rnic: r, depth: depth, waits: qpconn.Plan{Sleep: transport.Park}}
}

// Resize changes the depth of the CQ. It fails, and changes nothing, if depth exceeds
// Limits.MaxCQDepth, is less than the number of completions that have not been polled, or is
// less than the queues of its QPs need (ErrCQTooSmall). After an overflow, Resize enables
// EventCQOverflow again.
func (cq *CQ) Resize(depth int) error {
	if err := quota.Depth(ErrLimit, "CQ", depth, cq.rnic.limits.MaxCQDepth); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.closed:
		return errCQClosed
	case cq.wcs.Len() > depth:
		return fmt.Errorf("%w: resize CQ to %d entries, %d have not been polled", ErrLimit, depth, cq.wcs.Len())
	case cq.needed > depth:
		return fmt.Errorf("%w: resize to %d entries, its queue pairs can need %d", ErrCQTooSmall, depth, cq.needed)
	}
	cq.depth, cq.overflowed = depth, false
	cq.wcs.Fit(depth)
	return nil
}

// Poll moves up to len(dst) completions to dst, the oldest first, and returns their number. It
// never blocks.
func (cq *CQ) Poll(dst []WC) int {
	cq.mu.Lock()
	n := cq.poll(dst)
	cq.wakeNext()
	cq.mu.Unlock()
	freeSlots(dst[:n])
	return n
}

// Stats reports how full the CQ is.
func (cq *CQ) Stats() CQStats {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return CQStats{Waiting: cq.wcs.Len(), Depth: cq.depth}
}

// poll moves completions to dst. mu is held. The caller must call freeSlots after releasing
// mu.
func (cq *CQ) poll(dst []WC) int {
	n := cq.wcs.Move(dst)
	for i := range n {
		if dst[i].isSolicited() {
			cq.solicited--
		}
	}
	return n
}

// freeSlots releases the slots of polled completions. Messages and posters may be waiting for
// them.
func freeSlots(wcs []WC) {
	for len(wcs) > 0 {
		from, run := wcs[0].QP.slotsOf(wcs[0].Op), 1 // completions of one queue
		for run < len(wcs) && wcs[run].QP.slotsOf(wcs[run].Op) == from {
			run++
		}
		from.Release(run)
		wcs = wcs[run:]
	}
}

// wakeNext wakes the first waiter that has something to return. A waiter that a receiving waiter has woken
// checks again in any case. Waking a waiter here that has nothing to return would leave one asleep that
// has. mu is held.
func (cq *CQ) wakeNext() {
	for i, w := range cq.waiters {
		if w.due() {
			cq.waiters = slices.Delete(cq.waiters, i, i+1)
			w.token.Tell()
			return
		}
	}
}

// setSole sets the QP that all queues of the CQ belong to, or nil if there is none. All waiters
// check again. A waiter that receives for the former QP, which setSole returns, must be woken
// by the caller, with nudge. mu is held.
func (cq *CQ) setSole(qp *QP) (former *QP) {
	if former = cq.sole; former == qp {
		return nil
	}
	cq.sole = qp
	for _, w := range cq.waiters {
		w.token.Tell()
	}
	return former
}

// All returns an iterator that yields completions as they arrive. It ends when the loop is
// left, or after yielding a zero WC with an error of Wait. It removes no completion from the
// CQ without yielding it.
func (cq *CQ) All(ctx context.Context) iter.Seq2[WC, error] {
	return func(yield func(WC, error) bool) {
		var one [1]WC
		for {
			n, err := cq.Wait(ctx, one[:])
			if err != nil {
				yield(WC{}, err)
				return
			}
			if n > 0 && !yield(one[0], nil) {
				return
			}
		}
	}
}

// Close closes the CQ and ends all waits on it. It fails while QPs use the CQ, until their channel of
// [QP.Done] is closed. Remaining completions can still be polled and waited for.
func (cq *CQ) Close() error {
	cq.mu.Lock()
	if cq.qps > 0 {
		defer cq.mu.Unlock()
		return fmt.Errorf("iwarp: close CQ: still in use by %d queues", cq.qps)
	}
	cq.close()
	cq.mu.Unlock()
	if cq.counted {
		cq.rnic.dropCQ(cq)
	}
	return nil
}

// close ends all waits. mu is held.
func (cq *CQ) close() {
	cq.closed = true
	for len(cq.waiters) > 0 {
		cq.wakeNext()
	}
}

// shut ends all waits because the RNIC is closed.
func (cq *CQ) shut() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.close()
}

// dropCQ removes a closed CQ from the RNIC. Only the first call has an effect.
func (r *RNIC) dropCQ(cq *CQ) {
	r.mu.Lock()
	_, there := r.cqs[cq]
	delete(r.cqs, cq)
	r.mu.Unlock()
	if there {
		r.used.cq.Give()
	}
}

// attach adds a queue of qp and reserves entries for it.
func (cq *CQ) attach(qp *QP, reserve int) error {
	former, err := cq.add(qp, reserve)
	former.nudge()
	return err
}

func (cq *CQ) add(qp *QP, reserve int) (former *QP, err error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.closed:
		return nil, errCQClosed
	case cq.needed+reserve > cq.depth:
		return nil, fmt.Errorf("%w: it has %d entries, and its queue pairs could need %d", ErrCQTooSmall, cq.depth, cq.needed+reserve)
	}
	cq.qps++
	cq.needed += reserve
	switch {
	case cq.qps == 1:
		cq.setSole(qp)
	case cq.sole != qp:
		former = cq.setSole(nil)
	}
	return former, nil
}

// nudge wakes the goroutine that receives for the QP, if it is waiting, because its wait may
// be over.
func (qp *QP) nudge() {
	if qp != nil {
		qp.conn.Load().Nudge()
	}
}

func (cq *CQ) detach(reserve int) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.needed -= reserve
	if cq.qps--; cq.qps == 0 {
		cq.setSole(nil)  // the former QP has ended
		if !cq.counted { // a QP's own CQ gets no more completions
			cq.close()
		}
	}
}

// push adds completions of one QP, and returns how many of them fit. The caller must nudge
// the returned QP, unless the caller itself receives for that QP.
func (cq *CQ) push(wcs ...WC) (fit int, sole *QP) {
	cq.mu.Lock()
	for ; fit < len(wcs); fit++ {
		wc := cq.next()
		if wc == nil {
			break
		}
		*wc = wcs[fit]
		cq.added(wc)
	}
	return fit, cq.pushed(fit == len(wcs))
}

// next returns the next free entry, which is zero, for the caller to fill in before it calls
// added. It returns nil if the CQ is full. mu is held.
func (cq *CQ) next() *WC {
	if cq.wcs.Len() >= cq.depth {
		return nil
	}
	return cq.wcs.Next(cqInitial)
}

// added adds the entry that next returned to the queue.
func (cq *CQ) added(wc *WC) {
	cq.wcs.Push()
	if wc.isSolicited() {
		cq.solicited++
	}
}

// pushed ends a run of entries; fit is false if an entry was missing. It releases mu. See push
// for the QP that it returns.
func (cq *CQ) pushed(fit bool) (sole *QP) {
	overflows := !fit && !cq.overflowed
	cq.overflowed = cq.overflowed || overflows
	cq.wakeNext()
	sole, depth := cq.sole, cq.depth
	cq.mu.Unlock()
	if overflows {
		cq.rnic.tally.CQOverflows.Add(1)
		cq.rnic.raise(Event{Kind: EventCQOverflow, CQ: cq, Err: fmt.Errorf("iwarp: CQ of %d entries overflowed: %w", depth, errtext.Clause(ErrQueueFull))})
	}
	return sole
}

// isSolicited reports whether WaitSolicited returns for wc: a message that requested an event,
// or any failure (draft-hilland-rddp-verbs section 8.2.5).
func (wc *WC) isSolicited() bool {
	return wc.Status != StatusSuccess || wc.Op.received() && wc.Flags&Solicited != 0
}

// slotsOf returns the slots of the queue that completions of op come from.
func (qp *QP) slotsOf(op Op) *slots.Count {
	if op.received() {
		return &qp.recvSlots
	}
	return &qp.sendSlots
}
