package rma

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
)

// settings are the parameters of a connection, from the configurations of its client and its server.
type settings struct {
	pd        *iwarp.PD
	initiator bool
	insecure  bool
	aes256    bool
	maxOp     int
	hello     time.Duration

	server    *Server // nil: this side serves nothing
	slots     int     // 0: this side makes no requests
	opTimeout time.Duration
	dispatch  [2]time.Duration // of the client
	solicitor *Solicitor
	scratch   *scratch
}

func serverSettings(s *Server) *settings {
	return &settings{
		pd: s.cfg.PD, insecure: s.cfg.Insecure, aes256: s.cfg.AES256, maxOp: s.cfg.MaxOp, hello: s.cfg.HelloTimeout,
		server: s, solicitor: s.solicitor, scratch: s.scratch,
	}
}

func clientSettings(c *ClientConfig) *settings {
	s := &settings{
		pd: c.PD, initiator: !c.Responder, insecure: c.Insecure, aes256: c.AES256, maxOp: c.MaxOp, hello: c.HelloTimeout,
		server: c.Server, slots: c.MaxSlots + controlSlots, opTimeout: c.OpTimeout, dispatch: c.Dispatch, solicitor: c.Solicitor,
	}
	if c.Server != nil {
		s.scratch = c.Server.scratch
		s.solicitor = cmp.Or(s.solicitor, c.Server.solicitor)
	} else {
		s.scratch = newScratch(c.ScratchLimit)
	}
	if s.solicitor == nil {
		s.solicitor = defaultSolicitor()
	}
	return s
}

func defaultSolicitor() *Solicitor { return newSolicitor(solicit.Config{}) }

// A client is the peer for which the keys of regions are derived.
type client struct {
	peer     iwarp.Peer
	known    bool // it was authenticated
	instance [16]byte
}

// A conn runs the operations of one QP, in both roles. One goroutine, in run, takes the completions, and
// the timer's goroutine lets timers run out. Each goroutine that has an event (a completion, a post, a
// grant, the end of a timer) locks mu, passes the event to a state machine, and performs the machine's
// actions before it unlocks mu: so messages are numbered in the order in which they are posted. Long
// actions run afterwards without mu, and their end is an event again: see work.go.
//
// A goroutine locks mu before the other locks of this package and those of the verbs, and never holds
// the mu of two connections. The lock of an Executor comes before the locks of its Portals, and that of a
// Client before that of its Slots. All others are leaves: nothing else is locked while they are held.
type conn struct {
	*settings
	qp   *iwarp.QP
	cq   *iwarp.CQ
	id   uint64 // among the connections of the server
	peer client

	secret  regionkey.Key     // of the connection; only if there are keys
	dataCtr regionkey.Counter // of the data that this side seals
	done    chan struct{}     // closed at the end of run
	ready   chan struct{}     // closed when the HELLO of the peer has been accepted

	mu       sync.Mutex
	now      time.Time // of the current event: see enter
	hello    op.Hello
	mine     wire.Hello
	theirs   wire.Hello
	suite    uint8
	overhead int        // octets that sealing adds
	maxOp    int        // the smaller one of both sides
	asClient *op.Client // nil before the HELLO, like asServer
	asServer *op.Server
	clientDo []op.Action // the pending actions of the machines
	serverDo []op.Action
	work     []work
	owed     int // octets of work
	revokes  []revoking
	stalled  []revoking // not yet in revokes
	looks    time.Time  // when to check stalled again

	sendCtr regionkey.Counter // of messages
	recvCtr uint64
	out, in *regionkey.Control // nil: the messages have no tags
	outbox  outbox

	receives receives
	leases   *leases
	blobs    *blobs
	calls    []call            // by slot
	flights  []flight          // by record of asClient
	requests []request         // by record of asServer
	asked    request           // the request in the current message
	granting uint64            // the grant that granted reports
	said     said              // by the current message
	opened   map[uint64]permit // by the numbers of regions

	timer   *time.Timer
	armed   time.Time // when the timer ends; zero: it does not run
	pause   time.Time // until then no timer runs out: see rings; zero: no pause
	stage   stage
	again   chan struct{} // a token makes run check again whether the connection is idle, when it is gone
	busy    int           // calls that have not ended
	drained chan struct{} // closed when the connection is closing, busy is 0 and asServer has answered all requests
	err     error         // why this side has ended the connection; nil: it has not
	wcs     [4]iwarp.WC   // of run
}

// errOneCQ is the error of a QP whose completions come on two CQs.
var errOneCQ = errors.New("rma: the QP needs one CQ for both queues: QPConfig.SendCQ and RecvCQ")

// newConn takes the QP over. If it fails, the QP remains unchanged.
func newConn(qp *iwarp.QP, s *settings) (*conn, error) {
	if qp.SendCQ() != qp.RecvCQ() {
		return nil, errOneCQ
	}
	c := &conn{settings: s, qp: qp, cq: qp.RecvCQ(), done: make(chan struct{}), ready: make(chan struct{}), drained: make(chan struct{}), again: make(chan struct{}, 1), opened: make(map[uint64]permit)}
	c.peer.peer, c.peer.known = qp.Peer()
	if err := c.makeKeys(); err != nil {
		if c.ending(err) {
			err = c.lostBy()
		}
		return nil, err
	}
	if err := c.prepareHello(); err != nil {
		return nil, err
	}
	if s.server != nil {
		c.id = s.server.join(c)
	}
	c.receives = receives{pd: s.pd, qp: qp}
	return c, nil
}

// enter locks mu for an event, and reads the clock. The event and all its consequences share this time,
// which may be too early: then the PullTimeout of a server ends earlier than it must.
func (c *conn) enter() {
	c.mu.Lock()
	c.now = time.Now()
}

// start begins to serve. The QP belongs to the connection from now on.
func (c *conn) start() {
	c.enter()
	c.timer = time.AfterFunc(time.Hour, c.rings)
	c.armed = c.now.Add(time.Hour)
	c.greet()
	c.leave()
	go c.run()
}

const (
	// mostLate is how late the timer may be in a process that runs.
	mostLate = 100 * time.Millisecond
	// readFirst is how long a process that was stopped reads what has arrived, before any timer runs out.
	readFirst = 100 * time.Millisecond
)

// rings handles the end of the timer. If the timer is late, this process was stopped, and messages that the peer sent in time
// may not have been read yet: they are read before any timer runs out.
func (c *conn) rings() {
	c.enter()
	if c.pause.IsZero() && !c.armed.IsZero() && c.now.Sub(c.armed) > mostLate {
		c.pause = c.now.Add(readFirst)
	}
	c.armed = time.Time{}
	if !c.now.Before(c.pause) {
		c.pause = time.Time{}
		c.tick()
	}
	c.lookAgain()
	c.settle()
	c.solicitor.deliver()
}

// lookAgain makes run check whether anything of the connection is left. mu is held.
func (c *conn) lookAgain() {
	select {
	case c.again <- struct{}{}:
	default: // there is a token
	}
}

// settle performs the actions of the machines, and unlocks mu.
func (c *conn) settle() {
	c.perform()
	c.flush()
	c.lookDrained()
	c.arm()
	c.mu.Unlock()
}

// leave does the same as settle. It also does the work that takes long, and tells other connections of their grants.
func (c *conn) leave() {
	for {
		w, more := c.nextWork()
		if !more || c.outbox.full() {
			c.flush()
		}
		if !more {
			c.lookDrained()
			c.spareMemory()
		}
		c.arm()
		c.mu.Unlock()
		c.solicitor.deliver()
		if !more {
			return
		}
		c.do(&w)
		c.enter()
		c.finish(&w)
	}
}

// leaveToRun is leave for goroutines of the user. If this side serves, the work may call methods of Buffers
// and Authorize, so it is left to run. mu is held.
func (c *conn) leaveToRun() {
	if c.server == nil {
		c.leave()
		return
	}
	c.settle()
	c.solicitor.deliver()
}

// perform performs the actions of the machines in order, including those that are added meanwhile. mu is held.
func (c *conn) perform() {
	for i, j := 0, 0; ; {
		switch {
		case i < len(c.clientDo):
			i++
			c.performClient(c.now, &c.clientDo[i-1])
		case j < len(c.serverDo):
			j++
			c.performServer(c.now, &c.serverDo[j-1])
		default:
			c.clientDo, c.serverDo = c.clientDo[:0], c.serverDo[:0]
			return
		}
	}
}

// arm sets the timer to the next time at which something is due. mu is held.
func (c *conn) arm() {
	var next time.Time
	earlier := func(t time.Time, ok bool) {
		if ok && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	earlier(c.hello.Deadline())
	if c.asClient != nil {
		earlier(c.asClient.Deadline())
		earlier(c.asServer.Deadline())
	}
	earlier(c.unsent())
	earlier(c.looks, len(c.stalled) > 0)
	if !c.outbox.empty() {
		earlier(c.now.Add(postWithin), true)
	}
	if next.Before(c.pause) {
		next = c.pause // also if nothing else is due
	}
	if next.IsZero() || !c.armed.IsZero() && !next.Before(c.armed) {
		return // the timer runs, and ends early enough
	}
	c.armed = next
	c.timer.Reset(time.Until(next))
}

// granted tells a machine that the window has admitted an operation.
func (c *conn) granted(t ticket) {
	c.enter()
	c.granting = t.grant
	if t.role == op.ClientRole {
		c.clientDo = c.asClient.Granted(c.clientDo, c.now, t.id)
	} else {
		c.serverDo = c.asServer.Granted(c.serverDo, c.now, t.id)
	}
	c.settle()
}

// end ends the connection because of an error that this side has found. mu is held.
func (c *conn) end(err error) {
	if !c.reach(failing) {
		return
	}
	c.err = err
	if c.asClient != nil {
		c.asClient.Ended()
	}
	c.cq.Signal() // run ends the QP
}

// ending reports whether err only shows that the QP is ending: then the reason for that is the error to report.
func (c *conn) ending(err error) bool {
	return errors.Is(err, net.ErrClosed) && c.qp.State() != iwarp.StateRTS
}

// lostBy returns why the connection has ended, as an error that matches net.ErrClosed. mu is held.
func (c *conn) lostBy() error {
	if c.err != nil {
		return fmt.Errorf("%w: %w", errClosed, c.err)
	}
	if err := c.qp.Err(); err != nil {
		return err
	}
	return errClosed
}
