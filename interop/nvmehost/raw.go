package nvmehost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A raw host sends the commands of a script, one at a time on each queue.
type raw struct {
	job  *Job
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newRaw(j *Job) (*raw, error) {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return nil, err
	}
	pd, err := rnic.AllocPD()
	return &raw{job: j, rnic: rnic, pd: pd}, err
}

func (r *raw) close() { _ = r.rnic.Close() }

// A queue is a connection.
type queue struct {
	*raw
	qp   *iwarp.QP
	recv *iwarp.MR // of mem
	mem  []byte
	cid  uint16
}

const (
	queueEntries = 32
	receiveSize  = 64
)

// An answer is a response, with the key that it has invalidated.
type answer struct {
	capsule.CQE
	invalidated stag.STag
}

// connect makes queue qid of a controller, or, for queue 0, a controller, whose number it returns.
func (r *raw) connect(ctx context.Context, qid, cntlid uint16) (*queue, uint16, error) {
	q := &queue{raw: r, mem: make([]byte, queueEntries*receiveSize)}
	var err error
	if q.recv, err = r.pd.RegisterMR(q.mem, stag.LocalWrite, nil); err != nil {
		return nil, 0, err
	}
	private := capsule.Request{QID: qid, HRQSize: queueEntries, HSQSize: queueEntries - 1, CNTLID: cntlid}
	q.qp, err = r.rnic.Dial(ctx, "tcp", r.job.Addr, &iwarp.QPConfig{
		PD: r.pd, RecvDepth: queueEntries, IRD: 128, ORD: -1,
		MPA:         iwarp.MPAOptions{ClientServer: true, NoFallback: true, NoCRC: r.job.NoCRC},
		PrivateData: private.Append(nil),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			for i := range queueEntries {
				if err := q.post(qp, i); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, 0, err
	}
	sqe := capsule.Connect{QID: qid, SQSize: queueEntries - 1}
	data := capsule.ConnectData{CNTLID: cntlid, SubNQN: r.job.SubNQN, HostNQN: r.job.HostNQN, HostID: [16]byte{18}}
	if qid == 0 {
		data.CNTLID = 0xFFFF
	}
	b := make([]byte, capsule.ConnectDataSize)
	data.Put(b)
	a, err := q.withData(ctx, b, stag.RemoteRead, func(sgl capsule.SGL) capsule.SQE { return sqe.SQE(0, sgl) })
	if err != nil {
		return nil, 0, fmt.Errorf("queue %d: %w", qid, err)
	}
	got, err := capsule.ParseConnectResponse(&a.CQE)
	return q, got, err
}

func (q *queue) post(qp *iwarp.QP, i int) error {
	return qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{q.recv.Slice(i*receiveSize, receiveSize)}})
}

// do sends a command, and waits for its response.
func (q *queue) do(ctx context.Context, sqe capsule.SQE) (answer, error) {
	q.cid++
	sqe.CID = q.cid
	msg := sqe.Append(nil)
	mr, err := q.pd.RegisterMR(msg, 0, nil)
	if err != nil {
		return answer{}, err
	}
	if err := q.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, len(msg))}}); err != nil {
		return answer{}, err
	}
	return q.answer(ctx)
}

func (q *queue) answer(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var wcs [1]iwarp.WC
	if _, err := q.qp.RecvCQ().Wait(ctx, wcs[:]); err != nil {
		return answer{}, err
	}
	wc := &wcs[0]
	if err := wc.Err(); err != nil {
		return answer{}, err
	}
	cqe, err := capsule.ParseCQE(q.mem[int(wc.ID)*receiveSize:][:wc.Len])
	if err == nil && cqe.CID != q.cid {
		err = fmt.Errorf("a response to command %d, in place of %d", cqe.CID, q.cid)
	}
	return answer{cqe, wc.STag}, errors.Join(err, q.post(q.qp, int(wc.ID)))
}

// withData makes the target read or write octets while it executes a command, whose key it must then invalidate.
func (q *queue) withData(ctx context.Context, p []byte, access stag.Access, command func(capsule.SGL) capsule.SQE) (answer, error) {
	mr, err := q.pd.RegisterMR(p, access, &iwarp.MROptions{QP: q.qp})
	if err != nil {
		return answer{}, err
	}
	rb := mr.Advertise(0, len(p))
	a, err := q.do(ctx, command(capsule.KeyedSGL(uint32(rb.STag), rb.TO, uint32(len(p)), true)))
	if err == nil && a.invalidated != rb.STag {
		err = fmt.Errorf("the response has invalidated %#x, and not %#x", a.invalidated, rb.STag)
	}
	return a, err
}

// ready makes a controller, enables it, and makes its first I/O queue.
func (r *raw) ready(ctx context.Context) (io *queue, err error) {
	admin, cntlid, err := r.connect(ctx, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("admin queue: %w", err)
	}
	enable := capsule.CC{EN: true, IOSQES: 6, IOCQES: 4}
	for _, set := range []capsule.SQE{
		capsule.SetProperty(capsule.PropCC, uint64(enable.Value())).SQE(0),
		capsule.SetFeatures{FID: capsule.FeatureQueues, Value: 0}.SQE(0, capsule.NullSGL()),
	} {
		if a, err := admin.do(ctx, set); err != nil || !a.Status.OK() {
			return nil, fmt.Errorf("enable the controller: %v, %w", a.Status, err)
		}
	}
	io, _, err = r.connect(ctx, 1, cntlid)
	return io, err
}
