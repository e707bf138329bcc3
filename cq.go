package iwarp

import (
	"context"
	"fmt"
	"iter"
	"net"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/ring"
	"github.com/goiwarp/iwarp/internal/slots"
	"github.com/goiwarp/iwarp/transport"
)

// A CQ is a completion queue: work requests of its QPs end here, those of one queue
// in the order in which they were posted. Any number of goroutines may poll and
// wait.
//
// A CQ should have room for every work request that its QPs can have posted,
// unsignaled ones included, since an error completes those too (RFC 5042 section
// 6.4.3.2): the sum of their SendDepth and RecvDepth, for a slot of a queue is free
// only when the completion of what was in it has been polled. That holds with an SRQ, too.
// A QP whose QPConfig sets depths for which the CQ has no room, beside those that others have
// set, is refused with ErrCQTooSmall, and so is a Resize that leaves too little for them. A
// depth that is left to its default reserves nothing: the program is trusted to post no more
// than the CQ holds. A completion that finds it full is lost: that raises EventCQOverflow and
// terminates the QP. Completions that ended QPs have left behind keep their entries until
// they are polled, and are not counted.
//
// A CQ is closed by Close, by the end of its RNIC, and one of a QP's own (see [QP.SendCQ])
// by the end of that QP. What is in it can then still be polled.
type CQ struct {
	rnic    *RNIC
	depth   int
	counted bool // against Limits.MaxCQ: it is not a QP's own

	mu         lockorder.Mutex[lockorder.CQ]
	ring       ring.Ring[WC] // grows on use
	head, tail uint64        // the oldest entry, and the next one
	solicited  int           // entries that WaitSolicited waits for
	qps        int           // attached queues
	needed     int           // their depths in sum, of those that were set
	sole       *QP           // whose they all are; nil if they are several's
	overflowed bool
	closed     bool
	waiters    []*cqWaiter // parked, the oldest first
	waits      qpconn.Plan // SetBusyPoll, SetWaitMode
}

const cqInitial = 16

// CreateCQ makes a completion queue of depth entries.
func (r *RNIC) CreateCQ(depth int) (*CQ, error) {
	if err := checkDepth("CQ", depth, r.limits.MaxCQDepth); err != nil {
		return nil, err
	}
	if err := r.take(&r.used.cq, r.limits.MaxCQ, "CQs"); err != nil {
		return nil, err
	}
	cq := newCQ(r, depth)
	cq.counted = true
	if !r.addCQ(cq) {
		r.used.cq.Give()
		return nil, errRNICClosed
	}
	return cq, nil
}

// addCQ reports false if the RNIC was closed: its end does not know the CQ.
func (r *RNIC) addCQ(cq *CQ) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == rnicClosed {
		return false
	}
	r.cqs[cq] = struct{}{}
	return true
}

var errCQClosed = fmt.Errorf("iwarp: CQ closed: %w", net.ErrClosed)

// newCQ makes a CQ that counts towards no limit: one of a QP whose user named none goes
// with the QP.
func newCQ(r *RNIC, depth int) *CQ {
	return &CQ{rnic: r, depth: depth, waits: qpconn.Plan{Sleep: transport.Park}}
}

// Resize gives the CQ room for depth entries, more or fewer than before. It fails, and
// changes nothing, if that is not within Limits.MaxCQDepth, or less than there are
// completions to be polled, or less than the queues of its QPs need (ErrCQTooSmall). A CQ
// that has overflowed tells of the next overflow again.
func (cq *CQ) Resize(depth int) error {
	if err := checkDepth("CQ", depth, cq.rnic.limits.MaxCQDepth); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch {
	case cq.closed:
		return errCQClosed
	case cq.len() > depth:
		return fmt.Errorf("%w: resize CQ to %d entries, %d wait to be polled", ErrLimit, depth, cq.len())
	case cq.needed > depth:
		return fmt.Errorf("%w: resize to %d entries, its queue pairs can need %d", ErrCQTooSmall, depth, cq.needed)
	}
	cq.depth, cq.overflowed = depth, false
	if len(cq.ring) > 2*depth {
		cq.ring = cq.ring.Moved(depth, cq.head, cq.tail)
	}
	return nil
}

// len is how many completions wait to be polled. mu is held.
func (cq *CQ) len() int { return int(cq.tail - cq.head) }

// Poll moves at most len(dst) completions to dst, the oldest first, and tells how
// many. It never blocks.
func (cq *CQ) Poll(dst []WC) int {
	cq.mu.Lock()
	n := cq.poll(dst)
	cq.wakeNext()
	cq.mu.Unlock()
	freeSlots(dst[:n])
	return n
}

// poll moves completions to dst. mu is held. freeSlots follows when it is not any more.
func (cq *CQ) poll(dst []WC) int {
	n := min(len(dst), cq.len())
	for i := range n {
		e := cq.ring.At(cq.head)
		dst[i] = *e
		if e.isSolicited() {
			cq.solicited--
		}
		*e = WC{}
		cq.head++
	}
	if cq.head == cq.tail {
		cq.head, cq.tail = 0, 0 // what is used again is in the cache
	}
	return n
}

// freeSlots gives back the slots of what was polled, for which messages and posters may wait.
func freeSlots(wcs []WC) {
	var from *slots.Count // of the queue that a run of completions comes from
	run := 0
	for i := range wcs {
		if s := wcs[i].QP.slotsOf(wcs[i].Op); s != from {
			if run > 0 {
				from.Release(run)
			}
			from, run = s, 0
		}
		run++
	}
	if run > 0 {
		from.Release(run)
	}
}

// wakeNext tells the first waiter for which there is something. One that serves has told looks
// again in any case: if there is nothing for it, telling it here would leave the one asleep for
// which there is. mu is held.
func (cq *CQ) wakeNext() {
	for i, w := range cq.waiters {
		if w.due() {
			cq.waiters = append(cq.waiters[:i], cq.waiters[i+1:]...)
			w.tell()
			return
		}
	}
}

// serves changes the QP whose queues all queues of the CQ are, nil if there is none. The
// waiters look again; that which receives for the QP that is returned is told by the caller. mu is held.
func (cq *CQ) serves(qp *QP) (former *QP) {
	if former = cq.sole; former == qp {
		return nil
	}
	cq.sole = qp
	for _, w := range cq.waiters {
		w.tell()
	}
	return former
}

// All yields completions as they come. It ends after yielding an error of Wait with
// a zero WC, or when the loop is left; nothing is taken that is not yielded.
func (cq *CQ) All(ctx context.Context) iter.Seq2[WC, error] {
	return func(yield func(WC, error) bool) {
		var one [1]WC
		for {
			if _, err := cq.Wait(ctx, one[:]); err != nil {
				yield(WC{}, err)
				return
			}
			if !yield(one[0], nil) {
				return
			}
		}
	}
}

// Close gives the CQ back and ends all waiting on it. It fails while QPs use it.
// Completions that nobody polled can still be polled, and waited for.
func (cq *CQ) Close() error {
	cq.mu.Lock()
	if cq.qps > 0 {
		defer cq.mu.Unlock()
		return fmt.Errorf("iwarp: close CQ: still in use by %d queue pairs", cq.qps)
	}
	cq.close()
	cq.mu.Unlock()
	if cq.counted {
		cq.rnic.dropCQ(cq)
	}
	return nil
}

// close ends all waiting. mu is held.
func (cq *CQ) close() {
	cq.closed = true
	for len(cq.waiters) > 0 {
		cq.wakeNext()
	}
}

// shut ends all waiting because the RNIC is closed.
func (cq *CQ) shut() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.close()
}

// dropCQ gives back a CQ that has been closed, once.
func (r *RNIC) dropCQ(cq *CQ) {
	r.mu.Lock()
	_, there := r.cqs[cq]
	delete(r.cqs, cq)
	r.mu.Unlock()
	if there {
		r.used.cq.Give()
	}
}

// attach adds a queue of the QP, for which so many entries are reserved.
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
		cq.serves(qp)
	case cq.sole != qp:
		former = cq.serves(nil)
	}
	return former, nil
}

// nudge tells the goroutine that receives for the QP, if it waits, that its wait may be over.
func (qp *QP) nudge() {
	if qp == nil {
		return
	}
	if conn := qp.conn.Load(); conn != nil {
		conn.Nudge()
	}
}

func (cq *CQ) detach(reserve int) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.needed -= reserve
	if cq.qps--; cq.qps == 0 {
		cq.serves(nil)   // the former one has ended
		if !cq.counted { // it was the QP's own, and nothing comes any more
			cq.close()
		}
	}
}

// push adds completions of one QP and reports whether there was room for all. The caller nudges
// the QP that is returned, unless it receives for that itself.
func (cq *CQ) push(wcs ...WC) (fit bool, sole *QP) {
	cq.mu.Lock()
	fit = true
	for i := range wcs {
		wc := cq.next()
		if wc == nil {
			fit = false
			break
		}
		*wc = wcs[i]
		cq.added(wc)
	}
	return fit, cq.pushed(fit)
}

// next is the entry that added counts, to be filled in; it is zero. nil: there is no room.
// mu is held.
func (cq *CQ) next() *WC {
	switch n := cq.len(); {
	case n >= cq.depth:
		return nil
	case n == len(cq.ring):
		cq.ring = cq.ring.Grown(cqInitial, cq.head, cq.tail)
	}
	return cq.ring.At(cq.tail)
}

// added counts the entry that next returned.
func (cq *CQ) added(wc *WC) {
	cq.tail++
	if wc.isSolicited() {
		cq.solicited++
	}
}

// pushed ends a run of entries, which was cut short unless all fit. It releases mu. For the QP
// that it returns see push.
func (cq *CQ) pushed(fit bool) (sole *QP) {
	overflows := !fit && !cq.overflowed
	cq.overflowed = cq.overflowed || overflows
	cq.wakeNext()
	sole, depth := cq.sole, cq.depth
	cq.mu.Unlock()
	if overflows {
		cq.rnic.raise(Event{Kind: EventCQOverflow, CQ: cq, Err: fmt.Errorf("iwarp: CQ of %d entries overflowed: %w", depth, clause{ErrQueueFull})})
	}
	return sole
}

// isSolicited tells what WaitSolicited waits for: a message that asked for an
// event, or any failure (draft-hilland-rddp-verbs section 8.2.5).
func (wc *WC) isSolicited() bool {
	return wc.Status != StatusSuccess || wc.Op.received() && wc.Flags&Solicited != 0
}

// slotsOf returns those of the queue that completions of op come from.
func (qp *QP) slotsOf(op Op) *slots.Count {
	if op.received() {
		return &qp.recvSlots
	}
	return &qp.sendSlots
}
