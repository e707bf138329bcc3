package op

import (
	"fmt"
	"slices"
	"time"
)

// A world is a client and a server with everything between and around them: two directions of a
// connection, each in order and arbitrarily slow, the placing and reading of memory without the machines,
// the windows of both, and the workers that seal, open and copy. Each takes one step at a time, in any
// order. Time passes in separate steps.
//
// Each step checks facts that only the test knows: see fault.
type world struct {
	state
	client *Client
	server *Server
	buf    []Action
}

// The bounds of a world.
const (
	maxOps     = 8
	maxPackets = 24
	maxWork    = 16
	maxGrants  = 12
	maxRecords = 8
)

// A state is a world without the machines. It is comparable.
type state struct {
	now     time.Duration
	params  params
	up      packets // from the client
	down    packets
	heard   [2]packets // by role: arrived, but not yet passed to Receive
	came    [2]uint8   // messages that have come
	read    [2]uint8   // messages passed to Receive
	sinks   [2][maxRecords]sink
	grants  [maxGrants]grant
	work    [maxWork]work
	ops     [maxOps]ledger
	posted  int
	dead    bool // the connection is gone
	lost    [2]bool
	closed  [2]bool
	junked  [2]bool // a message arrived that ends the connection
	ended   bool    // a machine has ended it
	revokes int     // that were requested
	fault   string
}

// params are the parameters in which worlds differ.
type params struct {
	plans    [maxOps]plan
	n        int              // operations
	rate     [2]time.Duration // by role: how many ns its clock gains in a ms
	copying  time.Duration    // longest duration of a copy
	lateness time.Duration    // how late Tick may be called; 0: any time
	cuts     bool             // the connection may be lost
	closes   bool             // both sides may be closed
	window   bool             // a window may expire and refuse
	junk     [2]bool          // by role: a message that ends the connection may arrive
}

// A plan is one operation.
type plan struct {
	cmd     Command
	verdict Verdict // of the request
	served  Verdict
	bad     bool // its blob is damaged
	unsent  bool // there is no memory for its blob
	copied  CopyResult
}

const (
	atClient = 0
	atServer = 1
)

// A packet is in flight.
type packet struct {
	kind   packetKind
	msg    Message
	op     ID
	record int // of the sink that a Write goes to, and of the one that a message invalidates
	ends   bool
}

type packetKind uint8

const (
	noPacket packetKind = iota
	aMessage
	aWrite
	aReadRequest
	aReadResponse
)

type packets struct {
	list [maxPackets]packet
	n    int
}

func (p *packets) push(k packet) {
	p.list[p.n] = k
	p.n++
}

func (p *packets) pop() packet {
	k := p.list[0]
	copy(p.list[:], p.list[1:p.n])
	p.n--
	p.list[p.n] = packet{}
	return k
}

// A sink is the STag of a record: of a sink or, at the client, of a source.
type sink struct {
	op      ID
	valid   bool
	written bool
}

type grantState uint8

const (
	noGrant grantState = iota
	grantQueued
	grantComing // the machine has not been told yet
	grantHad
	grantHeld
)

type grant struct {
	op   ID
	role uint8
	at   grantState
}

type workKind uint8

const (
	noWork workKind = iota
	workSeal
	workOpen
	workServe
	workOpenData
	workCopy
	workCopying
	workPulled
	workLinger // a sink that is being revoked stays valid until this work is done, which takes as long as the other side likes
	workRevoke
)

// A work is a task of a machine's caller.
type work struct {
	kind   workKind
	role   uint8
	op     ID
	record int
	good   bool
	until  time.Duration // of a copy: Before, then its latest end
	came   uint8         // of a Revoke: messages that are received first
}

// A ledger is what the test knows about an operation.
type ledger struct {
	id      ID
	done    bool
	outcome Outcome
	changed bool // the region, or the buffer of a read
}

// wrong notes the first fault.
func (w *world) wrong(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// clock returns the time of a side.
func (w *world) clock(role uint8) time.Time {
	return epoch.Add(w.now + w.now/time.Millisecond*w.params.rate[role])
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(p params, cc ClientConfig, sc ServerConfig) *world {
	w := &world{client: NewClient(cc, epoch), server: NewServer(sc, epoch)}
	w.params = p
	return w
}

// ledger finds the plan of an operation.
func (w *world) ledger(id ID) (*ledger, *plan) {
	for i := range w.ops[:w.posted] {
		if w.ops[i].id == id {
			return &w.ops[i], &w.params.plans[i]
		}
	}
	w.wrong("operation %x is unknown", id)
	return &ledger{}, &plan{}
}

// A step is a step of a world.
type step struct {
	kind stepKind
	i    int
	to   time.Duration // of stepTime
}

type stepKind uint8

const (
	stepPost stepKind = iota
	stepArriveUp
	stepArriveDown
	stepReceive // by role
	stepGrant   // by grant: in the window
	stepTell    // by grant
	stepExpire
	stepRefuse
	stepWork // by work
	stepTick // by role
	stepLost // by role
	stepCut
	stepClose // by role
	stepJunk  // by role
	stepTime
)

var stepNames = []string{"post", "arrive up", "arrive down", "receive", "grant", "tell", "expire", "refuse", "work", "tick", "lost", "cut", "close", "junk", "time"}

func (s step) String() string { return fmt.Sprintf("%s %d %v", stepNames[s.kind], s.i, s.to) }

// steps appends all steps that are possible now, except stepTime.
func (w *world) steps(dst []step) []step {
	add := func(ok bool, k stepKind, i int) {
		if ok {
			dst = append(dst, step{kind: k, i: i})
		}
	}
	add(w.posted < w.params.n && !w.lost[atClient] && !w.closed[atClient] && !w.junked[atClient], stepPost, 0)
	add(w.up.n > 0, stepArriveUp, 0)
	add(w.down.n > 0, stepArriveDown, 0)
	for role := range 2 {
		add(w.heard[role].n > 0, stepReceive, role)
		due, ok := w.deadline(uint8(role))
		add(ok && !w.clock(uint8(role)).Before(due), stepTick, role)
		add(w.dead && !w.lost[role] && w.heard[role].n == 0 && !w.completes(uint8(role)), stepLost, role)
		add(w.params.closes && !w.closed[role], stepClose, role)
		add(w.params.junk[role] && !w.dead && !w.junked[role], stepJunk, role)
	}
	add((w.params.cuts || w.ended) && !w.dead, stepCut, 0)
	for i := range w.grants {
		add(w.grants[i].at == grantQueued, stepGrant, i)
		add(w.grants[i].at == grantQueued && w.params.window, stepExpire, i)
		add(w.grants[i].at == grantQueued && w.params.window, stepRefuse, i)
		add(w.grants[i].at == grantComing, stepTell, i)
	}
	for i := range w.work {
		k := &w.work[i]
		add(k.kind != noWork && (k.kind != workRevoke || w.read[k.role] >= k.came && !w.completes(k.role)), stepWork, i)
	}
	return dst
}

// completes reports whether an RDMA Read has completed of which the server has not been told.
func (w *world) completes(role uint8) bool {
	return slices.ContainsFunc(w.work[:], func(k work) bool { return k.kind == workPulled && k.role == role })
}

func (w *world) deadline(role uint8) (time.Time, bool) {
	if role == atClient {
		return w.client.Deadline()
	}
	return w.server.Deadline()
}

// mayPass reports whether time may pass until then: no copy and no Tick may be later than allowed.
func (w *world) mayPass(to time.Duration) bool {
	for i := range w.work {
		if k := &w.work[i]; k.kind == workCopying && to > k.until {
			return false
		}
	}
	if w.params.lateness == 0 {
		return true
	}
	for role := range uint8(2) {
		if due, ok := w.deadline(role); ok && epoch.Add(to).Sub(due) > w.params.lateness {
			return false
		}
	}
	return true
}

// do does a step.
func (w *world) do(s step) {
	switch s.kind {
	case stepPost:
		w.post()
	case stepArriveUp:
		w.arrive(atServer, w.up.pop())
	case stepArriveDown:
		w.arrive(atClient, w.down.pop())
	case stepReceive:
		k := w.heard[s.i].pop()
		w.read[s.i]++
		w.receive(uint8(s.i), &k.msg)
	case stepGrant:
		w.grants[s.i].at = grantComing
	case stepTell, stepExpire, stepRefuse:
		w.tell(s.kind, &w.grants[s.i])
	case stepWork:
		w.finish(&w.work[s.i])
	case stepTick:
		if s.i == atClient {
			w.act(atClient, w.client.Tick(w.buf[:0], w.clock(atClient)))
		} else {
			w.act(atServer, w.server.Tick(w.buf[:0], w.clock(atServer)))
		}
	case stepLost:
		w.loses(uint8(s.i))
	case stepCut:
		w.cut()
	case stepClose:
		w.closed[s.i] = true
		if s.i == atClient {
			w.act(atClient, w.client.Close(w.buf[:0], w.clock(atClient)))
		} else {
			w.act(atServer, w.server.Close(w.buf[:0], w.clock(atServer)))
		}
	case stepJunk:
		w.junked[s.i] = true
		w.came[s.i]++
		w.heard[s.i].push(packet{kind: aMessage, msg: Message{Type: [2]Type{TypePull, TypeData}[s.i], Op: NewID(0xffff, 1)}})
	case stepTime:
		w.now = s.to
	}
}

// cut ends the connection: packets in flight are lost.
func (w *world) cut() {
	w.dead = true
	w.up, w.down = packets{}, packets{}
}

func (w *world) loses(role uint8) {
	w.lost[role] = true
	for i := range w.sinks[role] {
		w.sinks[role][i].valid = false
	}
	if role == atClient {
		w.act(atClient, w.client.Lost(w.buf[:0], w.clock(atClient)))
	} else {
		w.act(atServer, w.server.Lost(w.buf[:0], w.clock(atServer)))
	}
}

// resting returns what is wrong in a world in which nothing can happen any more.
func (w *world) resting() string {
	switch {
	case w.fault != "":
		return w.fault
	case !w.client.Idle():
		return "the client is not idle"
	case !w.server.Idle():
		return "the server is not idle"
	case w.grants != [maxGrants]grant{}:
		return "a grant was not given back"
	case w.work != [maxWork]work{}:
		return "a worker works"
	}
	for i := range w.ops[:w.posted] {
		if !w.ops[i].done {
			return fmt.Sprintf("operation %x was not completed", w.ops[i].id)
		}
	}
	for _, sinks := range w.sinks {
		if slices.ContainsFunc(sinks[:], func(s sink) bool { return s.valid }) {
			return "an STag is valid"
		}
	}
	return ""
}
