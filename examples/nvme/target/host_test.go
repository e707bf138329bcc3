package target

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

const (
	storage = "nqn.2026-11.org.example:disk"
	hostNQN = "nqn.2026-11.org.example:host"
)

var hostID = [16]byte{1, 2, 3}

// A host is a scripted host: it sends what a test tells it to, and has one RNIC.
type host struct {
	t    testing.TB
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	addr string
	nqn  string

	subsystem string
}

func newHost(t testing.TB, addr string) *host {
	rnic, pd := rnictest.Open(t, nil)
	return &host{t: t, rnic: rnic, pd: pd, addr: addr, nqn: hostNQN, subsystem: storage}
}

// A line is a queue of a host.
type line struct {
	h       *host
	qid     uint16
	entries int
	qp      *iwarp.QP
	cq      *iwarp.CQ
	recv    *iwarp.MR
	mem     []byte
	wcs     [1]iwarp.WC
	cid     uint16
	cut     bool              // the connection may end
	early   map[uint16]answer // responses taken while waiting for another one
}

// An answer is a response with the STag that came with it.
type answer struct {
	capsule.CQE
	stag stag.STag
}

// request returns the private data of Linux.
func request(qid uint16, entries int) capsule.Request {
	return capsule.Request{QID: qid, HRQSize: uint16(entries), HSQSize: uint16(entries - 1)}
}

const responseSize = 64

// dial sets up a connection. change, if not nil, changes its configuration.
func (h *host) dial(qid uint16, entries int, change func(*iwarp.QPConfig)) (*line, error) {
	l := h.line(qid, entries)
	qc := l.config()
	if change != nil {
		change(qc)
	}
	var err error
	l.qp, err = h.rnic.Dial(context.Background(), network(h.addr), h.addr, qc)
	return l, err
}

// line makes a queue that is not connected.
func (h *host) line(qid uint16, entries int) *line {
	l := &line{h: h, qid: qid, entries: entries, mem: make([]byte, entries*responseSize), early: map[uint16]answer{}}
	var err error
	l.cq, err = h.rnic.CreateCQ(1024)
	require.NoError(h.t, err)
	l.recv, err = h.pd.RegisterMR(l.mem, stag.LocalWrite, nil)
	require.NoError(h.t, err)
	return l
}

func (l *line) config() *iwarp.QPConfig {
	return &iwarp.QPConfig{
		PD: l.h.pd, RecvCQ: l.cq, RecvDepth: l.entries, SendDepth: 512, IRD: 128, ORD: -1,
		MPA:         iwarp.MPAOptions{ClientServer: true, NoFallback: true},
		PrivateData: request(l.qid, l.entries).Append(nil),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			for i := range l.entries {
				if err := l.post(qp, i); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// network returns the network of an address: names of pipes contain no colon.
func network(addr string) string {
	for _, c := range addr {
		if c == ':' {
			return "tcp"
		}
	}
	return "pipe"
}

func (l *line) post(qp *iwarp.QP, i int) error {
	return qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{l.recv.Slice(i*responseSize, responseSize)}})
}

// send sends a command with the octets that follow it, and returns its CID.
func (l *line) send(sqe capsule.SQE, behind ...byte) uint16 {
	l.cid++
	sqe.CID = l.cid
	l.sendRaw(append(sqe.Append(nil), behind...))
	return sqe.CID
}

func (l *line) sendRaw(msg []byte) {
	wr := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}
	if len(msg) > 0 {
		mr, err := l.h.pd.RegisterMR(msg, 0, nil)
		require.NoError(l.h.t, err)
		wr.Local = []iwarp.SGE{mr.Slice(0, len(msg))}
	}
	err := l.qp.PostSend(wr)
	if !l.cut {
		require.NoError(l.h.t, err)
	}
}

// next waits for the next response.
func (l *line) next() (answer, error) {
	if _, err := l.cq.Wait(context.Background(), l.wcs[:]); err != nil {
		return answer{}, err
	}
	wc := &l.wcs[0]
	if err := wc.Err(); err != nil {
		return answer{}, err
	}
	cqe, err := capsule.ParseCQE(l.mem[int(wc.ID)*responseSize:][:wc.Len])
	require.NoError(l.h.t, err)
	_ = l.post(l.qp, int(wc.ID))
	return answer{cqe, wc.STag}, nil
}

// wait waits for the response to a command.
func (l *line) wait(cid uint16) answer {
	l.h.t.Helper()
	for {
		if a, ok := l.early[cid]; ok {
			delete(l.early, cid)
			return a
		}
		a, err := l.next()
		require.NoError(l.h.t, err)
		l.early[a.CID] = a
	}
}

// do sends a command, and waits for its response.
func (l *line) do(sqe capsule.SQE, behind ...byte) answer {
	l.h.t.Helper()
	return l.wait(l.send(sqe, behind...))
}

func (l *line) ok(sqe capsule.SQE, behind ...byte) answer {
	l.h.t.Helper()
	a := l.do(sqe, behind...)
	require.Equal(l.h.t, capsule.Success, a.Status)
	return a
}

// window registers memory of the host for the target, and describes it.
func (l *line) window(p []byte, access stag.Access) capsule.SGL {
	mr, err := l.h.pd.RegisterMR(p, access, &iwarp.MROptions{QP: l.qp, BaseTO: 1<<63 | 0x12345000})
	require.NoError(l.h.t, err)
	rb := mr.Advertise(0, len(p))
	return capsule.KeyedSGL(uint32(rb.STag), rb.TO, uint32(len(p)), true)
}

func (l *line) readable(p []byte) capsule.SGL {
	return l.window(p, stag.RemoteRead)
}

func (l *line) writable(p []byte) capsule.SGL {
	return l.window(p, stag.LocalWrite|stag.RemoteWrite)
}

// connect sends Connect with keyed data.
func (l *line) connect(nqn string, cntlid uint16) answer {
	data := make([]byte, capsule.ConnectDataSize)
	d := capsule.ConnectData{HostID: hostID, CNTLID: cntlid, SubNQN: nqn, HostNQN: l.h.nqn}
	d.Put(data)
	m := capsule.Connect{QID: l.qid, SQSize: uint16(l.entries - 1)}
	return l.do(m.SQE(0, l.readable(data)))
}

// A session is a controller of a host, with I/O queues.
type session struct {
	*host
	cntlid uint16
	admin  *line
	io     []*line
}

// connect connects a host as Linux does, with n I/O queues.
func (h *host) connect(n int) *session {
	h.t.Helper()
	l, err := h.dial(0, 32, nil)
	require.NoError(h.t, err)
	a := l.connect(h.subsystem, capsule.AnyController)
	require.Equal(h.t, capsule.Success, a.Status)
	s := &session{host: h, cntlid: uint16(a.DW0), admin: l}
	l.ok(capsule.SetProperty(capsule.PropCC, 0x00460001).SQE(0))
	csts := l.ok(capsule.GetProperty(capsule.PropCSTS).SQE(0))
	require.EqualValues(h.t, 1, csts.Value()&1, "RDY")
	for range n {
		s.queue(128, nil)
	}
	return s
}

// queue adds an I/O queue.
func (s *session) queue(entries int, change func(*iwarp.QPConfig)) *line {
	s.t.Helper()
	l, err := s.dial(uint16(len(s.io)+1), entries, change)
	require.NoError(s.t, err)
	require.Equal(s.t, capsule.Success, l.connect(s.subsystem, s.cntlid).Status)
	s.io = append(s.io, l)
	return l
}

func rw(op capsule.Opcode, lba uint64, blocks int, sgl capsule.SGL) capsule.SQE {
	return capsule.RW{Opcode: op, NSID: 1, SLBA: lba, NLB: uint16(blocks - 1)}.SQE(0, sgl)
}

const lba = 4096

// write writes blocks with keyed data.
func (l *line) write(at uint64, p []byte) answer {
	return l.do(rw(capsule.OpWrite, at, len(p)/lba, l.readable(p)))
}

// writeInside writes blocks with their data in the capsule.
func (l *line) writeInside(at uint64, p []byte) answer {
	return l.do(rw(capsule.OpWrite, at, len(p)/lba, capsule.InCapsuleSGL(0, uint32(len(p)))), p...)
}

// read reads blocks.
func (l *line) read(at uint64, p []byte) answer {
	return l.do(rw(capsule.OpRead, at, len(p)/lba, l.writable(p)))
}

// pattern returns n octets that differ from place to place.
func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i) ^ byte(i>>8)*3 ^ byte(i>>16)*5 ^ seed
	}
	return p
}

// all runs f n times at the same time.
func all(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
