package nvmeperf

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

const (
	enemyNQN = "nqn.2026-11.org.example:enemy"
	// enemyEntries is the size of a queue of the enemy.
	enemyEntries = 16
	// attackPause is the pause between two attacks, and attackTime how long an attack takes at most.
	attackPause = 10 * time.Millisecond
	attackTime  = 5 * time.Second
	// attackWait is how long the enemy waits for the end of its connection.
	attackWait = 20 * time.Millisecond
	// mostHeld is how many connections the enemy keeps that send nothing, or read nothing.
	mostHeld = 8
)

// An enemy is a host that does what a host must not do. The target's reaction does not matter here.
type enemy struct {
	addr    string
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	rand    *rand.Rand
	admin   *iwarp.QP // nil: there is no controller now
	cntlid  uint16
	held    []*iwarp.QP
	last    int // how many connections were to be held so far
	attacks atomic.Int64
	begun   chan struct{} // closed with the first attack
}

func newEnemy(addr string) (e *enemy, err error) {
	e = &enemy{addr: addr, rand: rand.New(rand.NewPCG(18, 5)), begun: make(chan struct{})}
	if e.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if e.pd, err = e.rnic.AllocPD(); err != nil {
		err = errors.Join(err, e.rnic.Close())
	}
	return e, err
}

func (e *enemy) close() error { return e.rnic.Close() }

// An attack is done with an I/O queue, which ends afterwards unless it is held.
type attack struct {
	name   string
	silent bool // without Connect
	does   func(ctx context.Context, e *enemy, qp *iwarp.QP) error
	held   bool
}

var attacks = []attack{
	{name: "random capsules", does: randomCapsules},
	{name: "messages of wrong lengths", does: wrongLengths},
	{name: "foreign keys", does: foreignKeys},
	{name: "more commands than the queue has entries", does: tooManyCommands},
	{name: "no Connect", silent: true, held: true},
	{name: "a socket that is not read", does: askForMuch, held: true},
}

// attack attacks until ctx ends.
func (e *enemy) attack(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		_ = e.once(ctx, &attacks[i%len(attacks)]) // the target's defence is not measured
		select {
		case <-ctx.Done():
		case <-time.After(attackPause):
		}
	}
}

func (e *enemy) once(ctx context.Context, a *attack) error {
	ctx, stop := context.WithTimeout(ctx, attackTime)
	defer stop()
	if err := e.controller(ctx); err != nil {
		return err
	}
	qid := uint16(1)
	if a.held { // such a queue lives longer
		qid = 2 + uint16(e.last%(2*mostHeld))
		e.last++
	}
	qp, c, err := e.dial(ctx, qid)
	if err != nil {
		return err
	}
	if e.attacks.Add(1) == 1 {
		close(e.begun)
	}
	if !a.silent {
		if _, err = e.connect(ctx, qp, qid); err != nil {
			e.admin = nil // the controller may have ended
		}
	}
	if err == nil && a.held {
		c.stall()
	} else if err == nil {
		err = e.receive(qp)
	}
	if err == nil && a.does != nil {
		err = a.does(ctx, e, qp)
	}
	if !a.held {
		return errors.Join(err, qp.Abort())
	}
	if e.held = append(e.held, qp); len(e.held) > mostHeld {
		err = errors.Join(err, e.held[0].Abort())
		e.held = e.held[1:]
	}
	return err
}

// controller makes a controller unless one exists.
func (e *enemy) controller(ctx context.Context) error {
	if e.admin != nil && e.admin.State() == iwarp.StateRTS {
		return nil
	}
	qp, _, err := e.dial(ctx, 0)
	if err != nil {
		return err
	}
	answer, err := e.connect(ctx, qp, 0)
	if err != nil {
		return errors.Join(err, qp.Abort())
	}
	e.admin, e.cntlid = qp, uint16(answer.DW0)
	enable := capsule.SetProperty(capsule.PropCC, 0x00460001).SQE(0)
	_, err = e.do(ctx, qp, &enable)
	return err
}

// dial sets up a connection that can be stalled.
func (e *enemy) dial(ctx context.Context, qid uint16) (*iwarp.QP, *stalling, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return nil, nil, err
	}
	c := &stalling{Conn: raw, closed: make(chan struct{})}
	request := capsule.Request{QID: qid, HRQSize: enemyEntries, HSQSize: enemyEntries - 1, CNTLID: e.cntlid}
	if qid == 0 {
		request.CNTLID = 0
	}
	qp, err := e.rnic.Client(ctx, c, &iwarp.QPConfig{
		PD: e.pd, SendDepth: 256, RecvDepth: 256, IRD: 128, ORD: -1, PrivateData: request.Append(nil),
		MPA: iwarp.MPAOptions{ClientServer: true},
	})
	return qp, c, err
}

// connect sends Connect.
func (e *enemy) connect(ctx context.Context, qp *iwarp.QP, qid uint16) (capsule.CQE, error) {
	mem := make([]byte, capsule.ConnectDataSize)
	d := capsule.ConnectData{HostID: [16]byte{66}, CNTLID: capsule.AnyController, SubNQN: diskNQN, HostNQN: enemyNQN}
	if qid != 0 {
		d.CNTLID = e.cntlid
	}
	d.Put(mem)
	sgl, err := e.lend(qp, mem, stag.RemoteRead)
	if err != nil {
		return capsule.CQE{}, err
	}
	sqe := capsule.Connect{QID: qid, SQSize: enemyEntries - 1}.SQE(0, sgl)
	return e.do(ctx, qp, &sqe)
}

// lend registers memory for the target.
func (e *enemy) lend(qp *iwarp.QP, mem []byte, access stag.Access) (capsule.SGL, error) {
	mr, err := e.pd.RegisterMR(mem, access, &iwarp.MROptions{QP: qp})
	if err != nil {
		return capsule.SGL{}, err
	}
	return capsule.KeyedSGL(uint32(mr.STag()), 0, uint32(len(mem)), true), nil
}

// do sends a command, and waits for a response.
func (e *enemy) do(ctx context.Context, qp *iwarp.QP, sqe *capsule.SQE) (cqe capsule.CQE, err error) {
	mem := make([]byte, capsule.SQESize)
	mr, err := e.pd.RegisterMR(mem, stag.LocalWrite, nil)
	if err != nil {
		return cqe, err
	}
	if err := qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: sqe.Append(nil)}); err != nil {
		return cqe, err
	}
	n, err := qp.Recv(ctx, mr.Slice(0, len(mem)))
	if err != nil {
		return cqe, err
	}
	return capsule.ParseCQE(mem[:n])
}

// send sends a message, and waits for nothing.
func (e *enemy) send(qp *iwarp.QP, msg []byte) error {
	return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: msg})
}

// errStands reports that the target has not ended the connection.
var errStands = errors.New("the connection stands")

// await waits for the end of the connection, and returns errStands if the target does not end it.
func (e *enemy) await(ctx context.Context, qp *iwarp.QP) error {
	select {
	case <-qp.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(attackWait):
		return errStands
	}
}

// receive posts receives for responses, whose contents do not matter.
func (e *enemy) receive(qp *iwarp.QP) error {
	mr, err := e.pd.RegisterMR(make([]byte, capsule.SQESize), stag.LocalWrite, nil)
	for range enemyEntries {
		err = errors.Join(err, qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, capsule.SQESize)}}))
	}
	return err
}

func randomCapsules(ctx context.Context, e *enemy, qp *iwarp.QP) error {
	for range enemyEntries {
		msg := make([]byte, capsule.SQESize+e.rand.IntN(512))
		for i := range msg {
			msg[i] = byte(e.rand.Uint32())
		}
		if err := e.send(qp, msg); err != nil {
			return err
		}
	}
	return e.await(ctx, qp)
}

func wrongLengths(ctx context.Context, e *enemy, qp *iwarp.QP) error {
	mem := make([]byte, 4*kib)
	for _, n := range []int{0, 1, 511, 4095} {
		sgl, err := e.lend(qp, mem[:n], stag.RemoteRead)
		if n == 0 {
			sgl, err = capsule.KeyedSGL(1, 0, 0xffffff, true), nil
		}
		if err != nil {
			return err
		}
		sqe := capsule.RW{Opcode: capsule.OpWrite, NSID: 1}.SQE(uint16(n), sgl)
		if err := e.send(qp, sqe.Append(nil)); err != nil {
			return err
		}
	}
	return errors.Join(e.send(qp, mem[:e.rand.IntN(capsule.SQESize)]), e.await(ctx, qp))
}

func foreignKeys(ctx context.Context, e *enemy, qp *iwarp.QP) error {
	for i, op := range []capsule.Opcode{capsule.OpWrite, capsule.OpRead} {
		sqe := capsule.RW{Opcode: op, NSID: 1}.SQE(uint16(i), capsule.KeyedSGL(e.rand.Uint32(), 1<<63, 4*kib, true))
		if err := e.send(qp, sqe.Append(nil)); err != nil {
			return err
		}
	}
	return e.await(ctx, qp)
}

func tooManyCommands(ctx context.Context, e *enemy, qp *iwarp.QP) error {
	for i := range 8 * enemyEntries {
		sqe := capsule.FlushSQE(uint16(i), 1)
		if err := e.send(qp, sqe.Append(nil)); err != nil {
			return err
		}
	}
	return e.await(ctx, qp)
}

// askForMuch requests more octets than the target can send to a host that reads nothing.
func askForMuch(ctx context.Context, e *enemy, qp *iwarp.QP) error {
	for i := range enemyEntries - 1 {
		sgl, err := e.lend(qp, make([]byte, mib), stag.LocalWrite|stag.RemoteWrite)
		if err != nil {
			return err
		}
		sqe := capsule.RW{Opcode: capsule.OpRead, NSID: 1, NLB: mib/(4*kib) - 1}.SQE(uint16(i), sgl)
		if err := e.send(qp, sqe.Append(nil)); err != nil {
			return err
		}
	}
	return e.await(ctx, qp)
}

// A stalling is a connection that from some moment on is not read any more.
type stalling struct {
	net.Conn

	stalled atomic.Bool
	closed  chan struct{}
	once    atomic.Bool
}

func (c *stalling) stall() { c.stalled.Store(true) }

// Read reads until the connection is stalled.
func (c *stalling) Read(p []byte) (int, error) {
	if c.stalled.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// Close ends Read, too.
func (c *stalling) Close() error {
	if !c.once.Swap(true) {
		close(c.closed)
	}
	return c.Conn.Close()
}
