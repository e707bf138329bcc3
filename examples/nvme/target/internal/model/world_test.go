package model

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/internal/octettest"
)

var unhex = octettest.Hex

const (
	hostA   = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555"
	hostB   = "nqn.2014-08.org.nvmexpress:uuid:bbbbbbbb-2222-4333-8444-555555555555"
	storage = "nqn.2024-01.test:storage"
)

var (
	idA = [16]byte{0xA}
	idB = [16]byte{0xB}
)

// A world is a target with an engine whose hosts, memory and back ends belong to the test. With each action it checks
// that a command is answered once, and that nothing is sent on a closed queue.
type world struct {
	t      *testing.T
	target *Target
	now    time.Duration
	lines  map[*Queue]*line
	// hold selects kinds of actions that are kept in held until the test continues them.
	hold map[Do]bool
	held []Action
	// status is the result that back ends return.
	status capsule.Status
	ops    []Op // the operations that back ends have begun
	closed []*line
}

// A line is a queue as its host sees it.
type line struct {
	w       *world
	q       *Queue
	host    string
	id      [16]byte
	memory  map[uint32][]byte // by STag
	open    map[uint16]int    // commands sent and not answered, by CID
	answers []capsule.CQE
	data    []byte // of the last answer with data
	last    Action
	cid     uint16
	key     uint32
	gone    bool
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	target, err := New(cfg)
	require.NoError(t, err)
	w := &world{t: t, target: target, lines: map[*Queue]*line{}, hold: map[Do]bool{}}
	out, err := target.AddSubsystem(SubsystemConfig{NQN: storage}, nil)
	w.must(out, err)
	return w
}

func (w *world) must(out []Action, err error) {
	w.t.Helper()
	require.NoError(w.t, err)
	w.do(out)
}

// namespace returns a configuration of 1000 LBAs of 4 KiB, with a cache.
func namespace(nsid uint32) NamespaceConfig {
	return NamespaceConfig{
		NSID: nsid, Geometry: capsule.Geometry{LBADS: 12, Blocks: 1000}, UUID: [16]byte{1, byte(nsid), byte(nsid >> 8)},
		Volatile: true, Trims: true, TrimmedZeroes: true,
	}
}

func (w *world) add(cfg NamespaceConfig) *Namespace {
	w.t.Helper()
	n, out, err := w.target.AddNamespace(storage, cfg, nil)
	w.must(out, err)
	return n
}

// arrive sets up a connection as Linux does.
func (w *world) arrive(host string, id [16]byte, qid uint16, entries int) *line {
	w.t.Helper()
	q, reject := w.target.Open(w.now, arrival(qid, entries))
	require.Zero(w.t, reject)
	l := &line{w: w, q: q, host: host, id: id, memory: map[uint32][]byte{}, open: map[uint16]int{}}
	w.lines[q] = l
	return l
}

func arrival(qid uint16, entries int) Arrival {
	req := capsule.Request{QID: qid, HRQSize: uint16(entries), HSQSize: uint16(entries - 1)}
	return Arrival{
		Private: req.Append(nil),
		IRD:     128,
		Local:   Address{capsule.AddressIPv4, "10.1.1.1", "4420"},
		Remote:  "10.1.1.2",
	}
}

// admin connects a host to a subsystem.
func (w *world) admin(host string, id [16]byte, nqn string) *line {
	w.t.Helper()
	l := w.arrive(host, id, 0, 32)
	l.ok(l.connect(nqn, capsule.AnyController))
	return l
}

// ready connects a host to the storage, and enables its controller.
func (w *world) ready() *line {
	w.t.Helper()
	l := w.admin(hostA, idA, storage)
	l.enable()
	return l
}

// io connects an I/O queue to the controller of an admin queue.
func (l *line) io(qid uint16) *line {
	l.w.t.Helper()
	q := l.w.arrive(l.host, l.id, qid, 32)
	q.ok(q.connect(storage, l.cntlid()))
	return q
}

func (l *line) cntlid() uint16 { return l.q.ctrl.id }

func (l *line) enable() {
	l.w.t.Helper()
	l.setCC(0x460000)
	l.setCC(0x460001)
	require.Equal(l.w.t, capsule.CSTS{RDY: true}, l.csts())
}

func (l *line) setCC(v uint64) {
	l.w.t.Helper()
	l.ok(l.ask(capsule.SetProperty(capsule.PropCC, v).SQE(l.next())))
}

func (l *line) csts() capsule.CSTS {
	l.w.t.Helper()
	r := l.ask(capsule.GetProperty(capsule.PropCSTS).SQE(l.next()))
	l.ok(r)
	return capsule.ParseCSTS(uint32(r.Value()))
}

// next returns a CID that was not used recently.
func (l *line) next() uint16 {
	l.cid++
	return l.cid
}

// at returns an SGL of host memory for n octets of data, with invalidation.
func (l *line) at(n int) capsule.SGL {
	l.key++
	return capsule.KeyedSGL(l.key, 0xFF17D4F47FEB8400, uint32(n), true)
}

// from returns an SGL of host memory that contains data.
func (l *line) from(data []byte) capsule.SGL {
	sgl := l.at(len(data))
	l.memory[l.key] = data
	return sgl
}

func (l *line) connectSQE(nqn string, cntlid uint16, change ...func(*capsule.Connect, *capsule.ConnectData)) capsule.SQE {
	m := capsule.Connect{QID: l.q.qid, SQSize: uint16(l.q.depth - 1)}
	d := capsule.ConnectData{HostID: l.id, CNTLID: cntlid, SubNQN: nqn, HostNQN: l.host}
	for _, f := range change {
		f(&m, &d)
	}
	data := make([]byte, capsule.ConnectDataSize)
	d.Put(data)
	return m.SQE(l.next(), l.from(data))
}

func (l *line) connect(nqn string, cntlid uint16, change ...func(*capsule.Connect, *capsule.ConnectData)) capsule.CQE {
	l.w.t.Helper()
	return l.ask(l.connectSQE(nqn, cntlid, change...))
}

// send sends a command, and continues it as far as the world does by itself.
func (l *line) send(c capsule.SQE, behind ...byte) {
	l.w.t.Helper()
	l.open[c.CID]++
	l.w.do(l.q.Command(l.w.now, append(c.Append(nil), behind...), nil))
}

// ask sends a command that is answered at once, before any other.
func (l *line) ask(c capsule.SQE, behind ...byte) capsule.CQE {
	l.w.t.Helper()
	before := len(l.answers)
	l.send(c, behind...)
	require.Greater(l.w.t, len(l.answers), before, "%+v is answered", c)
	r := l.answers[before]
	require.Equal(l.w.t, c.CID, r.CID)
	return r
}

// refused requires that a command was answered with a status and DW0.
func (l *line) refused(want capsule.Status, dw0 uint32, r capsule.CQE) {
	l.w.t.Helper()
	require.Equal(l.w.t, want, r.Status)
	require.Equal(l.w.t, dw0, r.DW0)
}

func (l *line) ok(r capsule.CQE) {
	l.w.t.Helper()
	require.Equal(l.w.t, capsule.Success, r.Status)
}

// lose ends the connection.
func (l *line) lose() {
	l.w.t.Helper()
	l.gone = true
	l.w.do(l.w.target.Lost(l.q, nil))
}

// do performs the actions of the engine.
func (w *world) do(actions []Action) {
	w.t.Helper()
	for _, a := range actions {
		if w.hold[a.Do] {
			w.held = append(w.held, a)
			continue
		}
		w.act(a)
	}
}

// goOn takes the oldest held action.
func (w *world) goOn() Action {
	w.t.Helper()
	require.NotEmpty(w.t, w.held, "there is something to go on with")
	a := w.held[0]
	w.held = w.held[1:]
	return a
}

func (w *world) act(a Action) {
	w.t.Helper()
	l := w.lines[a.Queue]
	switch a.Do {
	case DoRespond:
		l.respond(a)
	case DoFetch:
		if a.Queue.Begin(a.Ref) {
			w.do(a.Queue.Fetched(w.now, a.Ref, l.octets(&a.Data), nil))
		}
	case DoFill:
		l.data = bytes.Repeat([]byte{0xA5}, int(a.Data.Length))
		w.do(a.Queue.Fill(a.Ref, l.data, nil))
	case DoExecute:
		if a.Queue.Begin(a.Ref) {
			w.ops = append(w.ops, a.Op)
			w.do(a.Queue.Finish(a.Ref, w.status, nil))
		}
	case DoFlush:
		for list, more := w.target.Flush(a.Controller); more; list, more = w.target.Flush(a.Controller) {
			w.ops = append(w.ops, Op{Kind: OpFlush, Namespaces: list})
			w.target.Flushed(a.Controller, w.status)
		}
	case DoClose:
		require.False(w.t, l.gone, "a queue is closed once")
		w.closed = append(w.closed, l)
		l.lose()
	default:
		w.t.Fatalf("action %v", a.Do)
	}
}

// octets returns the contents of the host's memory.
func (l *line) octets(d *capsule.Data) []byte {
	if b, written := l.memory[d.STag]; written {
		return b
	}
	return bytes.Repeat([]byte{0xEE}, int(d.Length))
}

// respond delivers a response to the host.
func (l *line) respond(a Action) {
	t := l.w.t
	t.Helper()
	require.False(t, l.gone, "nothing is sent on a closed queue")
	r, err := capsule.ParseCQE(a.Response.Octets[:])
	require.NoError(t, err)
	require.Positive(t, l.open[r.CID], "CID %#x is answered once", r.CID)
	if l.open[r.CID]--; l.open[r.CID] == 0 {
		delete(l.open, r.CID)
	}
	require.Equal(t, l.q.qid, r.SQID)
	l.answers = append(l.answers, r)
	l.last = a
	if a.Last {
		l.lose()
	}
}

// tick lets time pass.
func (w *world) tick(d time.Duration) time.Duration {
	w.t.Helper()
	w.now += d
	next, out := w.target.Tick(w.now, nil)
	w.do(out)
	return next
}

// isClosed reports whether the target has closed the queue.
func (l *line) isClosed() bool { return slices.Contains(l.w.closed, l) }

// RemoveSubsystem ends the controllers of a subsystem, and removes it with its namespaces.
func (t *Target) RemoveSubsystem(nqn string, out []Action) ([]Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.nvm(nqn)
	if err != nil {
		return out, err
	}
	for len(s.controllers) > 0 {
		out = t.end(s.controllers[0], out)
	}
	t.subsystems = slices.DeleteFunc(t.subsystems, func(o *subsystem) bool { return o == s })
	return t.discoveryChanged(out), nil
}
