package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// An assoc is one association of the host with a controller of the target: an admin queue and I/O
// queues, from Connect until the first of them fails. A failed association is never reused: a new
// connection makes another one.
type assoc struct {
	o      *Options
	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	addr   string
	subnqn string

	cntlid   uint16
	cap      capsule.CAP
	version  capsule.Version
	id       *capsule.IdentifyController
	nvm      capsule.IdentifyNVM
	transfer int   // maximum number of octets that a command moves
	noEvents error // with which the target has refused to enable events
	admin    *queue
	io       []*queue
	next     atomic.Uint32 // I/O queue

	down    chan struct{} // closed when the association has failed
	workers sync.WaitGroup

	mu     sync.Mutex
	queues []*queue
	err    error
}

// newAssoc connects the admin queue and enables the controller.
func newAssoc(ctx context.Context, rnic *iwarp.RNIC, addr, subnqn string, o *Options) (*assoc, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	a := &assoc{o: o, rnic: rnic, pd: pd, addr: addr, subnqn: subnqn, down: make(chan struct{})}
	if err := a.begin(ctx); err != nil {
		return nil, a.discard(err)
	}
	return a, nil
}

// discard closes an association that could not be completed. If its connections were lost meanwhile,
// the cause of the loss is a better error than that of the command that failed.
func (a *assoc) discard(err error) error {
	a.fail(err)
	if errors.Is(err, ErrLost) {
		err = a.cause()
	}
	a.close(false)
	return err
}

func (a *assoc) begin(ctx context.Context) (err error) {
	if a.admin, err = a.open(ctx, queueConfig{entries: adminSize, transfer: adminTransfer}); err != nil {
		return err
	}
	if a.cntlid, err = a.connect(ctx, a.admin, capsule.AnyController); err != nil {
		return err
	}
	if err := a.enable(ctx); err != nil {
		return err
	}
	return a.identify(ctx)
}

// open adds a queue to the association.
func (a *assoc) open(ctx context.Context, c queueConfig) (*queue, error) {
	q, err := openQueue(ctx, a.rnic, a.pd, a.addr, a.o, c, a.fail)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queues = append(a.queues, q)
	if a.err != nil {
		q.kill(a.err)
	}
	return q, nil
}

// connect sends the command Connect on a queue, and returns the CNTLID.
func (a *assoc) connect(ctx context.Context, q *queue, cntlid uint16) (uint16, error) {
	data := make([]byte, capsule.ConnectDataSize)
	d := capsule.ConnectData{HostID: a.o.HostID, CNTLID: cntlid, SubNQN: a.subnqn, HostNQN: a.o.HostNQN}
	d.Put(data)
	m := capsule.Connect{QID: q.qid, SQSize: uint16(q.entries - 1)}
	if q.qid == 0 {
		m.KATO = uint32(a.o.KATO / time.Millisecond)
	}
	cqe, err := q.do(ctx, &command{sqe: m.SQE(0, capsule.SGL{}), data: data, timeout: a.o.AdminTimeout})
	if err != nil {
		return 0, err
	}
	return capsule.ParseConnectResponse(&cqe)
}

// openIO connects the I/O queues: as many as are requested and granted.
func (a *assoc) openIO(ctx context.Context) error {
	cqe, err := a.command(ctx, capsule.SetFeatures{FID: capsule.FeatureQueues, Value: capsule.Queues(a.o.Queues).Value()}.SQE(0, capsule.SGL{}), nil)
	if err != nil {
		return err
	}
	n := min(a.o.Queues, capsule.ParseQueueCount(cqe.DW0).Pairs())
	c := queueConfig{entries: a.ioEntries(), cntlid: a.cntlid, transfer: a.transfer, inside: a.inCapsule()}
	for i := range n {
		c.qid = uint16(i + 1)
		q, err := a.open(ctx, c)
		if err != nil {
			return err
		}
		cntlid, err := a.connect(ctx, q, a.cntlid)
		if err != nil {
			return &ioQueueError{c.qid, err}
		}
		if cntlid != a.cntlid {
			return malformed("I/O queue %d is of controller %d instead of %d", c.qid, cntlid, a.cntlid)
		}
		a.io = append(a.io, q)
	}
	return nil
}

// command executes an admin command. After a temporary status it sends the command again, at most Options.Retries times: otherwise one
// such answer to an Identify would end the use of a namespace. A status other than success is an error.
func (a *assoc) command(ctx context.Context, sqe capsule.SQE, data []byte) (capsule.CQE, error) {
	for tries := 0; ; tries++ {
		cqe, err := a.admin.do(ctx, &command{sqe: sqe, data: data, timeout: a.o.AdminTimeout})
		if err != nil || cqe.Status.OK() || tries == a.o.Retries || !passes(cqe.Status) {
			return cqe, cmp.Or(err, cqe.Status.Err())
		}
		if err := sleep(ctx, retryDelay); err != nil {
			return cqe, err
		}
	}
}

// passes reports whether a command may succeed when it is sent again. A command that the target does not know is refused again: some
// targets do not set DNR there.
func passes(s capsule.Status) bool {
	return !s.DNR() && !unknown(s) && !s.Is(capsule.StatusInvalidNamespace)
}

// unknown reports whether the target does not know a command, or a value in it.
func unknown(s capsule.Status) bool {
	return s.Is(capsule.StatusInvalidOpcode) || s.Is(capsule.StatusInvalidField)
}

// queue returns the I/O queue for the next command.
func (a *assoc) queue() *queue {
	return a.io[a.next.Add(1)%uint32(len(a.io))]
}

// fail ends the association: all its commands fail with the cause.
func (a *assoc) fail(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return
	}
	a.err = cause
	for _, q := range a.queues {
		q.kill(cause)
	}
	close(a.down)
}

// failed reports whether the association has failed.
func (a *assoc) failed() bool {
	select {
	case <-a.down:
		return true
	default:
		return false
	}
}

// cause returns why the association has failed, nil if it has not.
func (a *assoc) cause() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// close ends the connections of a failed association, I/O queues first, and returns when all its
// resources are released.
func (a *assoc) close(graceful bool) {
	cause := a.cause()
	a.closeIO(cause, graceful)
	if a.admin != nil {
		a.admin.close(cause, graceful)
	}
	a.workers.Wait()
	_ = a.pd.Close()
}

// closeIO ends the connections of the I/O queues, all at the same time. Their commands fail with the
// cause.
func (a *assoc) closeIO(cause error, graceful bool) {
	a.mu.Lock()
	queues := slices.DeleteFunc(a.queues, func(q *queue) bool { return q == a.admin })
	if a.queues = nil; a.admin != nil {
		a.queues = []*queue{a.admin}
	}
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, q := range queues {
		wg.Go(func() { q.close(cause, graceful) })
	}
	wg.Wait()
}
