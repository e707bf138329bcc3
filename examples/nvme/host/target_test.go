package host

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
	"github.com/goiwarp/iwarp/stag"
)

// A target is a small target whose behaviour a test changes. Contents that no test changes are those of the kernel's
// target in the golden file.
type target struct {
	t    testing.TB
	rnic *iwarp.RNIC
	l    *iwarp.Listener
	addr string
	wg   sync.WaitGroup

	// A test may set these before the first connection.
	id        capsule.IdentifyController
	discovery capsule.IdentifyController
	cap       capsule.CAP
	version   capsule.Version
	granted   int
	crqsize   func(capsule.Request) uint16
	reject    func(capsule.Request) []byte // nil: accept
	size      int                          // of the receives and of the data of a queue

	mu sync.Mutex
	// on handles a command instead of the target, if it returns true.
	on         func(c *call) bool
	namespaces map[uint32]*volume
	changed    []uint32
	log        []byte // of discovery
	cntlid     uint16
	queues     []*targetQueue
	seen       []capsule.SQE
	requests   []capsule.Request
	connects   []capsule.ConnectData
}

// A volume is a namespace.
type volume struct {
	id     capsule.IdentifyNamespace
	names  capsule.Descriptors
	blocks map[uint64][]byte
}

// A call is a command that a targetQueue has received.
type call struct {
	capsule.SQE
	q      *targetQueue
	behind []byte
	data   capsule.Data
}

var loadGolden = sync.OnceValues(golden.Load)

func goldenItem(t testing.TB, conn int, name string) []byte {
	items, err := loadGolden()
	require.NoError(t, err)
	for _, i := range items {
		if i.Conn == conn && i.Name == name {
			return i.Octets
		}
	}
	t.Fatalf("no %s on connection %d", name, conn)
	return nil
}

func newTarget(t testing.TB) *target { return newTargetOn(t, "pipe", "") }

func newTargetOn(t testing.TB, network, addr string) *target {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	tg := &target{
		t: t, rnic: rnic, granted: 128, size: 64 + 4096, namespaces: make(map[uint32]*volume),
		cap: capsule.CAP{MQES: 127, CQR: true, TO: 15, CSS: 1 | capsule.CSSCSI}, version: capsule.Version13,
	}
	for conn, to := range map[int]*capsule.IdentifyController{0: &tg.discovery, 1: &tg.id} {
		id, err := capsule.ParseIdentifyController(goldenItem(t, conn, golden.Data+"identify-ctrl"))
		require.NoError(t, err)
		*to = *id
	}
	tg.log = goldenItem(t, 0, golden.Data+"get-log-70-3072")
	id, err := capsule.ParseIdentifyNamespace(goldenItem(t, 1, golden.Data+"identify-ns"))
	require.NoError(t, err)
	names, err := capsule.ParseDescriptors(goldenItem(t, 1, golden.Data+"identify-nsdesc"))
	require.NoError(t, err)
	tg.namespaces[1] = &volume{id: *id, names: *names, blocks: make(map[uint64][]byte)}
	tg.l, err = rnic.Listen(context.Background(), network, addr, nil)
	require.NoError(t, err)
	tg.addr = tg.l.Addr().String()
	tg.wg.Go(tg.accept)
	t.Cleanup(tg.close)
	return tg
}

func (tg *target) close() {
	tg.l.Close()
	tg.rnic.Close()
	tg.wg.Wait()
}

// script changes the behaviour of the target.
func (tg *target) script(on func(c *call) bool) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.on = on
}

// commands returns the received commands of one opcode.
func (tg *target) commands(op capsule.Opcode) (list []capsule.SQE) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	for _, c := range tg.seen {
		if c.Opcode == op {
			list = append(list, c)
		}
	}
	return list
}

// live returns the queues whose connections have not ended.
func (tg *target) live() (list []*targetQueue) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	for _, q := range tg.queues {
		if q.qp.State() == iwarp.StateRTS {
			list = append(list, q)
		}
	}
	return list
}

func (tg *target) accept() {
	for {
		r, err := tg.l.Accept(context.Background())
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			tg.wg.Go(func() { tg.serve(r) })
		}
	}
}

// A targetQueue is a connection of a host.
type targetQueue struct {
	tg     *target
	qid    uint16
	qp     *iwarp.QP
	cq     *iwarp.CQ
	mem    []byte
	mr     *iwarp.MR
	data   []byte
	dataMR *iwarp.MR
	sqhd   atomic.Uint32 // tests answer, too
	cc     capsule.CC
	sub    string
	cntlid uint16
}

func (tg *target) serve(r *iwarp.ConnRequest) {
	req, _ := capsule.ParseRequest(r.PrivateData())
	tg.mu.Lock()
	tg.requests = append(tg.requests, req)
	reject := tg.reject
	tg.mu.Unlock()
	if reject != nil {
		if private := reject(req); private != nil {
			_ = r.Reject(private)
			return
		}
	}
	q := &targetQueue{tg: tg, qid: req.QID}
	if q.open(r, req) != nil {
		return
	}
	tg.mu.Lock()
	tg.queues = append(tg.queues, q)
	tg.mu.Unlock()
	q.run()
}

func (q *targetQueue) open(r *iwarp.ConnRequest, req capsule.Request) (err error) {
	tg, n := q.tg, int(req.HSQSize)+1
	pd, err := tg.rnic.AllocPD()
	require.NoError(tg.t, err)
	q.cq, err = tg.rnic.CreateCQ(4 * n)
	require.NoError(tg.t, err)
	q.mem, q.data = make([]byte, n*tg.size), make([]byte, maxTransfer)
	q.mr, err = pd.RegisterMR(q.mem, stag.LocalWrite, nil)
	require.NoError(tg.t, err)
	q.dataMR, err = pd.RegisterMR(q.data, stag.LocalWrite, nil)
	require.NoError(tg.t, err)
	crqsize := uint16(n)
	if tg.crqsize != nil {
		crqsize = tg.crqsize(req)
	}
	q.qp, err = r.Accept(context.Background(), &iwarp.QPConfig{
		PD: pd, RecvCQ: q.cq, RecvDepth: n, IRD: -1,
		PrivateData: capsule.Accept{CRQSize: crqsize}.Append(nil),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			for i := range n {
				if err := q.receive(qp, i); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return err
}

func (q *targetQueue) receive(qp *iwarp.QP, i int) error {
	return qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{q.mr.Slice(i*q.tg.size, q.tg.size)}})
}

func (q *targetQueue) run() {
	wcs := make([]iwarp.WC, 8)
	for {
		n, err := q.cq.Wait(context.Background(), wcs)
		for _, wc := range wcs[:n] {
			if wc.Status != iwarp.StatusSuccess {
				return
			}
			msg := append([]byte(nil), q.mem[int(wc.ID)*q.tg.size:][:wc.Len]...)
			_ = q.receive(q.qp, int(wc.ID))
			q.handle(msg)
		}
		if err != nil {
			return
		}
	}
}

func (q *targetQueue) handle(msg []byte) {
	sqe, behind, err := capsule.ParseSQE(msg)
	if err != nil {
		q.qp.Abort()
		return
	}
	data, status := sqe.Data(behind)
	c := &call{SQE: sqe, q: q, behind: behind, data: data}
	q.tg.mu.Lock()
	q.tg.seen = append(q.tg.seen, sqe)
	on := q.tg.on
	q.tg.mu.Unlock()
	switch {
	case on != nil && on(c):
	case !status.OK():
		c.answer(0, status)
	default:
		c.execute()
	}
}

// fetch reads the data of the command from the host.
func (c *call) fetch() ([]byte, error) {
	if c.data.Kind == capsule.DataInCapsule {
		return c.data.Octets, nil
	}
	n := int(c.data.Length)
	err := c.q.qp.RDMARead(context.Background(), c.q.dataMR.Slice(0, n), c.remote())
	return c.q.data[:n], err
}

func (c *call) remote() iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: stag.STag(c.data.STag), TO: c.data.TO, Len: c.data.Length}
}

// put writes octets to the host's memory at an offset.
func (c *call) put(off int, p []byte) error {
	n := copy(c.q.data, p)
	return c.q.qp.RDMAWrite(context.Background(), c.remote().Slice(off, n), c.q.dataMR.Slice(0, n))
}

// answer sends a response, with an invalidation if the command asks for it.
func (c *call) answer(value uint64, s capsule.Status) {
	var t stag.STag
	if c.data.Invalidate {
		t = stag.STag(c.data.STag)
	}
	c.answerWith(value, s, t)
}

// answerWith is answer with any STag to invalidate, 0 for none.
func (c *call) answerWith(value uint64, s capsule.Status, t stag.STag) {
	cqe := capsule.CQE{SQHD: uint16(c.q.sqhd.Add(1)), SQID: c.q.qid, CID: c.CID, Status: s}
	cqe.SetValue(value)
	c.q.send(&cqe, t)
}

func (q *targetQueue) send(cqe *capsule.CQE, t stag.STag) {
	wr := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: cqe.Append(nil)}
	if t != 0 {
		wr.Op, wr.Invalidate = iwarp.OpSendInvalidate, t
	}
	_ = q.qp.PostSend(wr)
}
