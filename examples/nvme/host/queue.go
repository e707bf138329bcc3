package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stag"
)

// A queue is one connection with a target: a submission queue and a completion queue.
type queue struct {
	qid      uint16
	entries  int // of the submission queue
	pd       *iwarp.PD
	transfer int // maximum number of octets that a command moves
	inside   int // maximum number of them in its capsule
	inline   int // maximum length of a capsule that the QP copies
	lost     func(cause error)

	qp      *iwarp.QP
	cq      *iwarp.CQ
	recvMR  *iwarp.MR
	recvs   []byte
	capMR   *iwarp.MR
	stopped chan struct{} // the goroutine that takes completions has ended

	slots []slot
	free  chan *slot
	kept  *slot // not in free: for Keep Alive
	event *slot // likewise, for Asynchronous Event Requests

	// Fields of the goroutine that takes completions.
	cqes  [pollSize]capsule.CQE
	again []iwarp.RecvWR
	into  []iwarp.SGE // one for each receive

	mu   sync.Mutex
	err  error // why there are no more commands
	dead chan struct{}
	busy int // slots in use

	ended   []*Transfer // Transfers whose Done is to be called
	calling []*Transfer // room for more of them, unless nil

	out     []iwarp.SendWR // commands that are to be posted
	posted  []iwarp.SendWR // the goroutine's that posts
	posting bool           // a goroutine posts, and what is in out when it is done

	timer *time.Timer
	due   time.Time // when the timer fires; zero: it does not
}

// A queueConfig holds the parameters in which queues differ.
type queueConfig struct {
	qid      uint16
	entries  int
	cntlid   uint16
	transfer int
	inside   int
}

const (
	recvSize = 64 // of a receive: a response has 16 octets
	pollSize = 64 // completions that are handled together
)

// openQueue connects a queue. lost is called, at most once, when the queue no longer works.
func openQueue(ctx context.Context, rnic *iwarp.RNIC, pd *iwarp.PD, addr string, o *Options, c queueConfig, lost func(cause error)) (*queue, error) {
	q := &queue{
		qid: c.qid, entries: c.entries, pd: pd, transfer: c.transfer, inside: c.inside, lost: lost,
		stopped: make(chan struct{}), dead: make(chan struct{}),
	}
	if err := q.open(ctx, rnic, addr, o, c); err != nil {
		q.release()
		return nil, fmt.Errorf("nvme: queue %d: %w", c.qid, err)
	}
	go q.run()
	return q, nil
}

func (q *queue) open(ctx context.Context, rnic *iwarp.RNIC, addr string, o *Options, c queueConfig) error {
	if err := q.allocate(rnic); err != nil {
		return err
	}
	var err error
	if q.qp, err = dial(ctx, rnic, addr, o, q.config(o, c)); err != nil {
		return rejected(err)
	}
	q.inline = min(q.qp.MaxSizes().Inline, capsule.SQESize)
	a, err := capsule.ParseAccept(q.qp.PrivateData())
	if err != nil {
		_ = q.qp.Abort()
		return err
	}
	if err := q.fill(min(int(a.CRQSize), q.entries) - 1); err != nil {
		_ = q.qp.Abort()
		return err
	}
	return nil
}

// dial connects in the client-server model, as Linux does with siw. Intel network cards know only the peer-to-peer model, and
// reset the connection: dial then tries again in that model, unless Auth or TLS rules out such a card.
func dial(ctx context.Context, rnic *iwarp.RNIC, addr string, o *Options, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	qp, err := dialOnce(ctx, rnic, addr, o, qc)
	if !errors.Is(err, mpa.ErrNoReply) || qc.Auth != nil || qc.TLS != nil {
		return qp, err
	}
	peers := *qc
	peers.MPA.ClientServer = false
	return dialOnce(ctx, rnic, addr, o, &peers)
}

func dialOnce(ctx context.Context, rnic *iwarp.RNIC, addr string, o *Options, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	if o.Dial == nil {
		return rnic.Dial(ctx, o.Network, addr, qc)
	}
	conn, err := o.Dial(ctx, o.Network, addr)
	if err != nil {
		return nil, err
	}
	qp, err := rnic.Client(ctx, conn, qc)
	if err != nil {
		_ = conn.Close() // it is still open after a rejection
	}
	return qp, err
}

// allocate makes the resources that the queue needs before there is a connection.
func (q *queue) allocate(rnic *iwarp.RNIC) (err error) {
	if q.cq, err = rnic.CreateCQ(2 * (q.sendDepth() + q.entries)); err != nil {
		return err
	}
	q.recvs = make([]byte, q.entries*recvSize)
	if q.recvMR, err = q.pd.RegisterMR(q.recvs, stag.LocalWrite, nil); err != nil {
		return err
	}
	size := capsule.SQESize + q.inside
	caps := make([]byte, q.entries*size)
	if q.capMR, err = q.pd.RegisterMR(caps, 0, nil); err != nil {
		return err
	}
	q.slots = make([]slot, q.entries)
	for i := range q.slots {
		s := &q.slots[i]
		s.index, s.capsule, s.done = uint16(i), caps[i*size:][:size], make(chan struct{}, 1)
	}
	q.timer = time.AfterFunc(time.Hour, q.expired)
	q.timer.Stop()
	return nil
}

// sendDepth returns a depth with room for an OpRegister and a Send of each slot.
func (q *queue) sendDepth() int { return 2 * q.entries }

func (q *queue) config(o *Options, c queueConfig) *iwarp.QPConfig {
	qc := o.QPConfig
	qc.PD, qc.SendCQ, qc.RecvCQ = q.pd, q.cq, q.cq
	qc.SendDepth, qc.RecvDepth = q.sendDepth(), q.entries
	qc.ORD, qc.RNRWait = -1, -1
	qc.IRD = cmp.Or(qc.IRD, defaultIRD)
	qc.MPA.Revision, qc.MPA.NoFallback, qc.MPA.ClientServer, qc.MPA.RTR, qc.MPA.FixedDepths = 2, true, true, 0, false
	qc.PrivateData = capsule.Request{QID: c.qid, HRQSize: uint16(q.entries), HSQSize: uint16(q.entries - 1), CNTLID: c.cntlid}.Append(nil)
	qc.Setup = func(ctx context.Context, qp *iwarp.QP) error {
		if o.QPConfig.Setup != nil {
			if err := o.QPConfig.Setup(ctx, qp); err != nil {
				return err
			}
		}
		for i := range q.entries {
			if err := q.postRecv(qp, i); err != nil {
				return err
			}
		}
		return nil
	}
	return &qc
}

func (q *queue) postRecv(qp *iwarp.QP, i int) error {
	local := [1]iwarp.SGE{q.recvMR.Slice(i*recvSize, recvSize)}
	return qp.PostRecv(iwarp.RecvWR{ID: receiveID(i), Local: local[:]})
}

// fill makes n slots usable: that many commands may be outstanding.
func (q *queue) fill(n int) error {
	slots := q.slots[:max(n, 0)]
	if q.qid == 0 {
		if n < 3 {
			return malformed("the target has room for %d commands on the admin queue, and a host needs 3", n)
		}
		q.kept, q.event, slots = &q.slots[0], &q.slots[1], slots[2:]
	}
	if len(slots) == 0 {
		return malformed("the target has room for no command")
	}
	q.free = make(chan *slot, len(slots))
	for i := range slots {
		q.free <- &slots[i]
	}
	return nil
}

// run takes completions until the queue is closed.
func (q *queue) run() {
	defer close(q.stopped)
	wcs := make([]iwarp.WC, pollSize)
	for {
		n, err := q.cq.Wait(context.Background(), wcs)
		if err := q.completed(wcs[:n]); err != nil {
			q.fail(err)
		}
		if err != nil {
			return
		}
	}
}

// fail ends all commands, and tells the owner of the queue.
func (q *queue) fail(cause error) {
	if q.kill(cause) {
		q.lost(cause)
	}
}

// kill ends all commands, which get their memory back: the region of each may stay VALID until the connection has
// ended, but no longer refers to the memory. Done of Transfers is called when the connection ends, which follows. kill
// reports whether this was the first call.
func (q *queue) kill(cause error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false
	}
	q.err = cause
	close(q.dead)
	for i := range q.slots {
		if s := &q.slots[i]; s.phase != free {
			s.window.detach()
			q.end(s, &LostError{Cause: cause, Sent: s.phase != queued})
		}
	}
	return true
}

// close ends the connection, gracefully or not, and returns when all resources of the queue are released.
func (q *queue) close(cause error, graceful bool) {
	q.kill(cause)
	if graceful {
		_ = q.qp.Close()
	}
	_ = q.qp.Abort()
	_ = q.cq.Close()
	<-q.stopped
	q.release()
}

// release frees the resources that allocate and the commands have made. The connection must have ended.
func (q *queue) release() {
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Lock() // see region
	slots := q.slots
	q.mu.Unlock()
	for i := range slots {
		if mr := slots[i].mr; mr != nil {
			_ = mr.Close()
		}
	}
	for _, mr := range []*iwarp.MR{q.recvMR, q.capMR} {
		if mr != nil {
			_ = mr.Close()
		}
	}
	if q.cq != nil {
		_ = q.cq.Close()
	}
}
