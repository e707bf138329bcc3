package iwarp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// What the tests of package iwarp_test see of the internals: errors and times that have no
// exported name, and functions that report whether a resource was released.

var (
	ErrAborted      = errAborted
	ErrAnswered     = errAnswered
	ErrBadClose     = errBadClose
	ErrHasNoSRQ     = errHasNoSRQ
	ErrHasSRQ       = errHasSRQ
	ErrInBuffer     = endwait.ErrInBuffer
	ErrNotConnected = errNotConnected
	ErrRNICClosed   = errRNICClosed
	ErrShutdown     = errShutdown
	ErrWithdrawing  = errWithdrawing

	DefaultLimits = defaultLimits
)

const (
	AbortTime       = abortTime
	DefaultDepth    = defaultDepth
	DefaultRNRWait  = defaultRNRWait
	EventDepth      = eventDepth
	PeerEndTime     = qpconn.PeerEndTime
	MaxReads        = maxReads
	RemoteBufferLen = remoteBufferLen
	NoticeAfter     = qpconn.NoticeAfter
)

// InUse counts what exists of the resources that Limits caps.
func (r *RNIC) InUse() Limits {
	u := &r.used
	return Limits{MaxQP: u.qp.InUse(), MaxMR: u.mr.InUse(), MaxPD: u.pd.InUse(), MaxCQ: u.cq.InUse(), MaxSRQ: u.srq.InUse()}
}

func (r *RNIC) NewQP(qc *QPConfig) (*QP, error) { return r.newQP(qc) }

// IsClosed reports whether Close has begun.
func (r *RNIC) IsClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life == rnicClosed
}

// HalfOpen counts the connections that are being set up.
func (r *RNIC) HalfOpen() int { return r.setups.Pending() }

// Tasks is how many goroutines the RNIC has.
func (r *RNIC) Tasks() int { return r.tasks.Count() }

func (pd *PD) Use() error { return pd.use(quota.QueuePairs) }
func (pd *PD) Release()   { pd.users.Remove(quota.QueuePairs) }

func (op Op) TakesReceive() bool { return op.takesReceive() }

func (qp *QP) PD() *PD { return qp.cfg.PD }

func NewCQ(r *RNIC, depth int) *CQ { return newCQ(r, depth) }
func (r *RNIC) Raise(e Event)      { r.raise(e) }

func (mr *MR) Valid() bool { return mr.region().Valid() }
func (mw *MW) Valid() bool { return mw.latest.Load().Valid() }

// Push enters completions, as a QP does, and reports whether there was room.
func (cq *CQ) Push(wcs ...WC) bool {
	fit, sole := cq.push(wcs...)
	sole.nudge()
	return fit == len(wcs)
}

// Memory is for how many completions the CQ has memory.
func (cq *CQ) Memory() int { return cq.wcs.Places() }

// Waiting is how many goroutines wait, and Solicited how many of them for a solicited event.
func (cq *CQ) Waiting() int   { return len(cq.waiters) }
func (cq *CQ) Solicited() int { return cq.solicited }
func (cq *CQ) RNIC() *RNIC    { return cq.rnic }

// SetDepth makes a CQ too small for its queue pairs, which no verb does.
func (cq *CQ) SetDepth(n int) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.depth = n
}

// Needed is how many entries the queue pairs of the CQ can fill.
func (cq *CQ) Needed() int { return cq.needed }

func (qp *QP) Abandon(err error) { qp.abandon(err) }

// Idle counts the work requests and the peer's Reads that are not done.
func (qp *QP) Unfinished() (sq, irq int) { return qp.stream.Unfinished() }

// Slots is how many slots of the send queue are taken.
func (qp *QP) Slots() int { return qp.sendSlots.Used() }

// HasReceive is asked for a message that has found no receive, and Starved counts the QPs that are to be told of the next one.
func (qp *QP) HasReceive() bool   { return owner{qp}.HasReceive() }
func (s *SRQ) Offers(qp *QP) bool { return s.offers(qp) }
func (s *SRQ) Starved() int       { return s.starved.Len() }

// PostUnheard is PostRecv up to where a message is resumed, and Resume is called for a message for whatever reason.
func (s *SRQ) PostUnheard(t testing.TB, wr RecvWR) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, err := s.post([]RecvWR{wr}); n != 1 {
		t.Fatal(err)
	}
}
func (qp *QP) Resume() { qp.conn.Load().Resume() }

// Posted is how many receives wait for a message.
func (qp *QP) Posted() int { return qp.rq.Posted() }

// Outcome returns the outcome of a set-up that has failed with fault.
func (qp *QP) Outcome(fault *transport.Fault) error { return outcome(context.Background(), qp, fault) }

// GiveUp ends the wait of a message for a receive, as its time does.
func (qp *QP) GiveUp() { qp.rq.giveUp() }

// CloseSend ends this side's half of the connection, which no verb does.
func (qp *QP) CloseSend() error { return qp.llp.CloseSend() }

// Establish makes a QP of an LLP that needs no set-up. agreed may be nil: the depths are those
// of the configuration.
func Establish(t testing.TB, r *RNIC, llp transport.LLP, qc *QPConfig, agreed *enhanced.Agreed) *QP {
	t.Helper()
	cfg, err := qc.withDefaults(r)
	require.NoError(t, err)
	if agreed == nil {
		agreed = &enhanced.Agreed{IRD: cfg.IRD, ORD: cfg.ORD}
	}
	qp, err := r.newQP(qc)
	require.NoError(t, err)
	require.NoError(t, qp.local(nil).Prepare(t.Context()))
	terms := &mpa.Terms{IRD: max(agreed.IRD, 0), ORD: max(agreed.ORD, 0), PeerIRD: -1, PeerORD: -1}
	require.NoError(t, qp.establish(t.Context(), llp, terms, 0))
	return qp
}

// ConnectOver makes QPs of the two ends of an LLP that needs no set-up. What MPA would
// negotiate is agreed all the same.
func ConnectOver(t testing.TB, a, b transport.LLP, client *RNIC, cc *QPConfig, server *RNIC, sc *QPConfig) (cq, sq *QP) {
	t.Helper()
	for _, qc := range []*QPConfig{cc, sc} {
		if qc.IRD == 0 {
			qc.IRD = defaultReads
		}
		if qc.ORD == 0 {
			qc.ORD = defaultReads
		}
	}
	ours := enhanced.Limits{IRD: cc.IRD, ORD: cc.ORD, RTR: transport.RTRWrite}
	reply, theirs := enhanced.Respond(enhanced.Request(ours), enhanced.Limits{IRD: sc.IRD, ORD: sc.ORD, RTR: transport.RTRWrite})
	agreed, fault := enhanced.Conclude(ours, reply)
	require.Nil(t, fault)
	return Establish(t, client, a, cc, &agreed), Establish(t, server, b, sc, &theirs)
}

// SIWWaits are the times of QP.wakeSIW.
var SIWWaits = siwWaits

// CompleteWithHelper completes a Send with a completion and then a blocking helper's Send, and returns
// how many completions there are when the helper is done.
func (qp *QP) CompleteWithHelper() int {
	e, send := events{qp}, uint32(makeBits(OpSend, 0))
	e.Complete(&rdmap.Request{Bits: send}, StatusSuccess, 0)
	e.Complete(&rdmap.Request{Bits: send, Tag: qp.helper()}, StatusSuccess, 0)
	defer e.Completed()
	return qp.sendCQ.Poll(make([]WC, 2))
}
