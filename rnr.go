package iwarp

import (
	"fmt"
	"math"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// RNRWaitForever is a [QPConfig].RNRWait without an end: a message waits until a receive
// is posted for it, or the QP ends. A sender of ibverbs gets the same by rnr_retry = 7.
const RNRWaitForever time.Duration = math.MaxInt64

const (
	defaultRNRWait = 30 * time.Second
	// rnrNotice is how long a message waits before EventNoReceive tells of it.
	rnrNotice = time.Second
)

// noReceive says what to do with a message that finds no receive posted.
func (qp *QP) noReceive() error {
	if qp.cfg.RNRWait < 0 {
		return nil
	}
	return transport.ErrStall
}

// patience starts the timer of a stall: an event after the first second, and an error of
// the message when limit is over. x.mu is held.
func (x *receiver) patience(limit time.Duration) *time.Timer {
	var t *time.Timer
	first := min(limit, rnrNotice)
	rest := limit - first // guarded by x.mu
	t = time.AfterFunc(first, func() {
		x.mu.Lock()
		if x.rnr != t { // a receive was posted, or the QP is ending
			x.mu.Unlock()
			return
		}
		if rest > 0 {
			t.Reset(rest)
			rest = 0
			x.mu.Unlock()
			x.qp.tellNoReceive()
			return
		}
		x.qp.rq.giveUp()
		x.mu.Unlock()
		x.wake()
	})
	return t
}

// tellNoReceive raises the event of a message that has waited for some time.
func (qp *QP) tellNoReceive() {
	qp.rnic.log.Warn("a message waits for a receive", "peer", qp.RemoteAddr(), "for", rnrNotice, "limit", qp.cfg.RNRWait)
	qp.rnic.raise(Event{Kind: EventNoReceive, QP: qp, Err: errNoReceiveYet})
}

var errNoReceiveYet = fmt.Errorf("%w for a message that has waited for %v", ErrNoReceive, rnrNotice)
