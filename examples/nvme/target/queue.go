package target

import (
	"context"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A queue is a connection, with the queue of the model.
type queue struct {
	t      *Target
	m      *model.Queue
	remote netip.AddrPort
	ctx    context.Context // ends with the connection; passed to back ends
	cancel context.CancelFunc
	cq     *iwarp.CQ
	recvs  *receives
	bufs   buffers
	tasks  sync.WaitGroup
	held   int64 // octets of the budget; guarded by that
	wants  taskList

	mu      sync.Mutex // held from a call of the model until what follows is in the outbox, so that SQHD ascends
	qp      *iwarp.QP  // set by Setup
	stage   stage
	slots   []*task // by Ref.Slot
	spare   *task   // free ones
	kept    []int   // receives of unanswered commands whose message is no longer needed
	fetches taskList
	reading int // RDMA Reads outstanding

	recv    [1]iwarp.RecvWR // under mu
	into    [1]iwarp.SGE
	out     outbox    // what is to be posted
	posting bool      // a goroutine posts, and what is in out when it is done
	posted  outbox    // used by the goroutine that posts
	posts   sync.Cond // posting has become false
}

// depths returns the depths of the QP's queues. A slot of the send queue is freed when its completion is polled, possibly
// after the host has received the response and sent the next command: there is room for two such generations.
func (q *queue) depths() (send, recv int) { return 6 * q.m.Depth(), q.m.Depth() }

// Handle answers a connection request, and serves the connection until its end. Serve calls it for the requests of a
// listener; a program may call it, in a separate goroutine, for other requests of the target's RNIC.
func (t *Target) Handle(cr *iwarp.ConnRequest) {
	if !t.enter() {
		_ = cr.Reject(capsule.RejectNoResources.Append(nil))
		return
	}
	defer t.queues.Done()
	q, reject := t.open(cr)
	if reject != 0 {
		t.stats.rejected.Add(1)
		t.lines.info("connection rejected", "peer", cr.RemoteAddr().String(), "why", reject.String())
		refuse(cr, reject)
		return
	}
	err := q.accept(cr)
	if err != nil {
		t.lines.info("connection failed", "peer", cr.RemoteAddr().String(), "err", err)
		q.lost()                                             // commands that have arrived anyway are not executed
		_ = cr.Reject(capsule.RejectNoResources.Append(nil)) // has no effect on a request that was answered
	} else {
		t.stats.connections.Add(1)
	}
	if q.qp != nil {
		q.serve()
	}
	q.end()
}

// serve serves a QP until its end, and returns when all completions were taken.
func (q *queue) serve() {
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		q.run()
	}()
	<-q.qp.Done()
	_ = q.cq.Close() // ends run, after all completions
	<-ran
}

// enter counts a connection. false: the target is closed.
func (t *Target) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.is(stopping) {
		return false
	}
	t.queues.Add(1)
	return true
}

func refuse(cr *iwarp.ConnRequest, s capsule.RejectStatus) {
	if s == capsule.RejectIRD {
		_ = cr.RejectDepths(s.Append(nil), -1, 1)
		return
	}
	_ = cr.Reject(s.Append(nil))
}

// open makes the queue of a connection, unless the model refuses it.
func (t *Target) open(cr *iwarp.ConnRequest) (*queue, capsule.RejectStatus) {
	remote, _ := netip.ParseAddrPort(cr.RemoteAddr().String()) // zero on a network that has other addresses
	local, _ := netip.ParseAddrPort(cr.LocalAddr().String())
	q := &queue{t: t, remote: remote}
	a := model.Arrival{Private: cr.PrivateData(), IRD: cr.IRD(), Local: addressOf(local), Remote: remote.Addr().Unmap().String()}
	if t.cfg.Authorize != nil {
		a.Authorize = q.authorize
	}
	m, reject := t.model.Open(t.now(), a)
	if reject != 0 {
		return nil, reject
	}
	q.m, q.slots = m, make([]*task, m.Depth())
	q.ctx, q.cancel = context.WithCancel(t.ctx)
	q.recv[0].Local, q.posts.L = q.into[:], &q.mu
	t.mu.Lock()
	t.live[m] = q
	t.mu.Unlock()
	t.wake()
	return q, 0
}

// authorize returns the program's decision on a Connect. The model calls it while a command is handled, so there is a QP.
func (q *queue) authorize(d *capsule.ConnectData) bool {
	l := &Login{Remote: q.remote, HostNQN: d.HostNQN, SubNQN: d.SubNQN, HostID: d.HostID}
	l.Peer, l.Authenticated = q.qp.Peer()
	err := q.t.cfg.Authorize(l)
	if err != nil {
		q.t.lines.info("Connect not authorized", "peer", q.remote, "host", d.HostNQN, "subsystem", d.SubNQN, "err", err)
	}
	return err == nil
}

// accept sets up the connection.
func (q *queue) accept(cr *iwarp.ConnRequest) (err error) {
	t := q.t
	send, recv := q.depths()
	if q.cq, err = t.rnic.CreateCQ(send + recv); err != nil {
		return err
	}
	qc := &iwarp.QPConfig{
		PD: t.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: send, RecvDepth: recv,
		IRD: -1, ORD: q.m.ORD(), Solicitor: t.cfg.Solicitor,
		PrivateData: q.m.Accept().Append(nil),
		RNRWait:     -1, StallWait: stallWait,
		MPA:      iwarp.MPAOptions{NoCRC: t.cfg.NoCRC},
		Setup:    q.setup,
		UserData: q,
	}
	if t.shared != nil {
		qc.SRQ = t.shared.srq
	}
	qp, err := cr.Accept(q.ctx, qc)
	if err == nil && (q.ctx.Err() != nil || t.is(stopping)) { // abort came before there was something to abort
		_ = qp.Abort()
	}
	return err
}

// setup posts the receives before the Reply is sent.
func (q *queue) setup(_ context.Context, qp *iwarp.QP) (err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.qp = qp
	if q.t.shared != nil {
		q.recvs = q.t.shared.receives
		return nil
	}
	n := q.m.Depth()
	if q.recvs, err = newReceives(q.t.pd, n, q.m.ReceiveSize(), qp); err != nil {
		return err
	}
	for i := range n {
		if err := q.postReceive(i); err != nil {
			return err
		}
	}
	return nil
}

// run takes completions until the CQ is closed. The work that results from completions taken together is posted together: a turn.
func (q *queue) run() {
	wcs := make([]iwarp.WC, 32)
	for {
		n, err := q.cq.Wait(context.Background(), wcs)
		for i := range n {
			q.completed(&wcs[i])
			if q.isFull() {
				q.flush()
			}
		}
		q.flush()
		if err != nil {
			return
		}
	}
}

func (q *queue) completed(wc *iwarp.WC) {
	ok := wc.Status == iwarp.StatusSuccess
	switch wc.Op {
	case iwarp.OpRecv:
		q.received(int(wc.ID), int(wc.Len), ok)
	case iwarp.OpRecvImm: // no host of NVMe sends Immediate Data
		q.keep(int(wc.ID))
		q.abort()
	case iwarp.OpRDMARead:
		q.fetched(wc)
	case iwarp.OpSend, iwarp.OpSendInvalidate:
		if wc.ID != 0 {
			q.giveBack(q.bufs.at(int(wc.ID - 1)))
		}
	default: // work that completes only if it fails, and the connection with it
	}
}

// received passes a message to the model.
func (q *queue) received(receive, n int, ok bool) {
	t := q.t
	t.tasks.Add(1) // Shutdown, which has not begun below, waits for what follows
	defer t.taskEnded()
	msg := q.recvs.octets(receive)
	if !ok || t.is(draining) && q.m.QID() != 0 && capsule.Opcode(msg[0]) != capsule.OpFabrics {
		q.keep(receive)
		return
	}
	t.stats.commands.Add(1)
	cur := current{receive: receive, cid: cidOf(msg[2:])}
	acts := t.actions.get()
	acts.turn = true
	q.mu.Lock()
	acts.list = q.m.Command(t.now(), msg[:n], acts.list)
	q.own(acts, &cur)
	q.mu.Unlock()
	t.perform(q, acts)
}

func (q *queue) keep(receive int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept = append(q.kept, receive)
}
