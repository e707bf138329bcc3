package op

import (
	"errors"
	"time"
)

// A Client is the state machine of the operations that one side of a connection issues.
//
// An operation has a slot from Post to Complete, and a record while it holds one of the credits that
// the server gives. Without a credit it waits in its slot, in the order of Post. The slot is free
// again once the outcome was reported; the record only when nothing can arrive for it any more.
//
//	state      timer     event            next state and actions
//	unused               Post, a read     window, Enqueue
//	                     Post, others     sent, SendRequest
//	window     dispatch  Granted          sent, SendRequest
//	                     Expired, Refused unused, Complete(DispatchTimeout)
//	                     timer            unused, Cancel, Complete(DispatchTimeout)
//	                     Close, Lost      unused, Cancel, Complete(Closed)
//	sent       OpTimeout READ_DONE        opening, OpenData; direct: unused, Release, Complete(OK)
//	                     PULL             sealing, Seal; of a source: pulled
//	                     OPEN_REP,
//	                     REKEY_DONE       unused, Complete(OK)
//	                     STATUS           unused, Release, Complete
//	                     Unsent           unused, Complete(DispatchTimeout)
//	                     timer            read: fenced, Hold, Complete(Timeout); or revoking, Revoke
//	                                      and Release besides, if Linger is 0
//	                                      direct read: withdrawn, Hold, Revoke
//	                                      source: recalled, Revoke
//	                                      others: late, Complete(Timeout)
//	                     Lost             unused, Release, Complete(Closed)
//	                     Lost, a Rekey    unused, Complete(Timeout, Gone)
//	                     Lost, source,
//	                     after End        lost, the timer is Ts + G from now
//	opening              Opened           unused, Release, Complete(OK or RemoteAuth)
//	sealing    Ts + G    Sealed           pulled, SendData
//	                     Unsent           unused, SendStatus(NACK, TooLate), Complete(DispatchTimeout)
//	                     STATUS, timer,
//	                     Lost             settled: with that outcome, Timeout or Closed
//	settled              Sealed, Unsent   unused, Complete
//	pulled     Ts + G    WRITE_DONE       unused, Complete(OK)
//	                     STATUS           unused, Complete
//	                     timer            unused, Complete(Timeout); source: withdrawn, Revoke
//	                     Lost             lost
//	lost       Ts + G    timer            unused, Complete(Timeout, Gone)
//	recalled             PULL             pulled
//	                     STATUS           revoked, Complete
//	                     Revoked          late, Complete(Timeout)
//	                     Lost             revoked, Complete(Timeout, Gone)
//	                     Revoked or Lost,
//	                     after End        lost, the timer is Ts + G from now
//	withdrawn            READ_DONE,
//	                     WRITE_DONE,
//	                     STATUS           revoked, Release, Complete
//	                     Revoked          read: late, Release, Complete(Timeout)
//	                                      write: unused, Complete(Timeout)
//	                     Lost             revoked, Release, Complete(Timeout, Gone)
//	fenced     Linger    READ_DONE,
//	                     STATUS, Lost     unused, Release
//	                     timer            revoking, Revoke, Release
//	revoking             READ_DONE,
//	                     STATUS, Lost     revoked
//	                     Revoked          late
//	revoked              Revoked          unused
//	late                 PULL             unused, SendStatus(NACK, TooLate)
//	                     other answers,
//	                     Lost             unused
//
// Release and Hold are for reads only: other operations have no grant. Each transition to unused also
// has Free, and passes the credit to the first operation that waits. A message that is not in the
// table ends the connection, except a STATUS or WRITE_DONE that comes after Timeout was reported.
//
// A late operation keeps its credit until the answer comes, because the server counts it until then.
// After a PULL the credit returns with the Timeout: the server has given up before.
//
// After End or Ended, messages are not received any more, so a PULL may have come unnoticed. Then the server
// may have begun to read a source, but not after it lost the connection.
type Client struct {
	cfg     ClientConfig
	clock   clock
	phase   phase
	slots   []slot
	free    []uint16 // slots
	ops     []operation
	unused  []int32 // ops
	waiting waitList
	last    uint64 // sequence number
	stats   ClientStats
}

// ClientConfig holds the values that the two sides have agreed on. The caller has checked them.
type ClientConfig struct {
	Slots     int // 1 to 65536
	Credits   int // requests that the server allows to be unanswered
	Dispatch  [classes]time.Duration
	OpTimeout time.Duration // for operations that have none of their own
	// PullTimeout, Guard and Linger are those of the server.
	PullTimeout time.Duration
	Guard       time.Duration
	Linger      time.Duration
	Overhead    uint32 // octets that sealing adds
}

// ClientStats are counters.
type ClientStats struct {
	Outcomes  [Outcomes]uint64 // operations that have ended
	Late      uint64           // answers that came after the outcome was reported
	LatePulls uint64           // late answers that were PULLs, and were refused
}

// A phase is the phase in the life of the connection.
type phase uint8

const (
	phaseOpen    phase = iota
	phaseClosing       // no more operations are started
	phaseEnded         // End was returned, or Ended called: messages are ignored
	phaseLost
)

// A Command is an operation to do.
type Command struct {
	Kind    Kind
	Class   Class
	Length  uint32
	Timeout time.Duration // until the answer or the PULL; 0: OpTimeout
	// Direct is for a read in suite 0: its sink is the buffer of the caller.
	Direct bool
	// Source is for a write in suite 0: the server reads the buffer of the caller itself.
	Source bool
}

// Errors of Post.
var (
	ErrNoSlot    = errors.New("rma: no slot")
	ErrExhausted = errors.New("rma: no operation IDs left")
	ErrClosed    = errors.New("rma: closed")
)

// A slot holds an operation from Post to Complete. A free slot has no ID.
type slot struct {
	id         ID
	cmd        Command
	due        time.Duration // while it waits for a credit
	op         int32         // -1: it waits for a credit
	prev, next int32         // in the waitList
}

// NewClient returns a machine without operations.
func NewClient(cfg ClientConfig, now time.Time) *Client {
	c := &Client{
		cfg: cfg, clock: newClock(now),
		slots: make([]slot, cfg.Slots), free: make([]uint16, 0, cfg.Slots),
		ops: make([]operation, cfg.Credits), unused: make([]int32, 0, cfg.Credits),
		waiting: waitList{head: none, tail: none},
	}
	for i := cfg.Slots - 1; i >= 0; i-- {
		c.free = append(c.free, uint16(i))
	}
	for i := cfg.Credits - 1; i >= 0; i-- {
		c.unused = append(c.unused, int32(i))
	}
	return c
}

// Stats returns the counters.
func (c *Client) Stats() ClientStats { return c.stats }

// Deadline returns when Tick has work next, or an earlier time. It reports false if there is no timer.
func (c *Client) Deadline() (time.Time, bool) { return c.clock.deadline() }

// Idle reports whether nothing is left: no slot is in use, no grant is held, no sink is valid. After
// Lost this state is always reached; before that, a server that does not answer may prevent it.
func (c *Client) Idle() bool {
	return len(c.free) == len(c.slots) && len(c.unused) == len(c.ops)
}

// Post starts an operation, and returns its ID. It never waits. The errors are ErrNoSlot, ErrClosed,
// and ErrExhausted, after which only a new connection helps.
func (c *Client) Post(dst []Action, now time.Time, cmd Command) ([]Action, ID, error) {
	c.clock.at(now)
	switch {
	case c.phase != phaseOpen:
		return dst, 0, ErrClosed
	case len(c.free) == 0:
		return dst, 0, ErrNoSlot
	case c.last == maxSequence:
		return dst, 0, ErrExhausted
	}
	c.last++
	n := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	s := &c.slots[n]
	*s = slot{id: NewID(n, c.last), cmd: cmd, due: c.clock.limit(c.cfg.Dispatch[cmd.Class]), op: none, prev: none, next: none}
	c.waiting.push(c.slots, int32(n))
	return c.start(dst), s.id, nil
}

// start gives the remaining credits to the operations that wait.
func (c *Client) start(dst []Action) []Action {
	for c.waiting.head != none && len(c.unused) > 0 {
		n := c.waiting.head
		c.waiting.remove(c.slots, n)
		i := c.unused[len(c.unused)-1]
		c.unused = c.unused[:len(c.unused)-1]
		s := &c.slots[n]
		s.op = i
		o := &c.ops[i]
		*o = operation{id: s.id, cmd: s.cmd, due: s.due}
		if s.cmd.Kind == Read {
			o.state = opWindow
			a := c.action(Enqueue, i)
			a.N = int64(s.cmd.Length) + int64(c.cfg.Overhead)
			dst = append(dst, a)
			continue
		}
		dst = c.send(dst, i)
	}
	return dst
}

// send sends the request of an operation that has everything it needs.
func (c *Client) send(dst []Action, i int32) []Action {
	o := &c.ops[i]
	o.state = opSent
	timeout := o.cmd.Timeout
	if timeout == 0 {
		timeout = c.cfg.OpTimeout
	}
	o.due = c.clock.timer(timeout)
	if o.cmd.Kind == Read || o.cmd.Source {
		o.tag = tagEnabled
	}
	return append(dst, c.action(SendRequest, i))
}

// Granted tells the Client that the window has granted an Enqueue.
func (c *Client) Granted(dst []Action, now time.Time, id ID) []Action {
	c.clock.at(now)
	i, ok := c.find(id)
	if !ok || c.ops[i].state != opWindow {
		return append(dst, Action{Do: Release, Op: id, Record: NoRecord, Kind: Read, Refund: RefundFailed})
	}
	return c.send(dst, i)
}

// Expired tells the Client that the operation has waited too long for the window.
func (c *Client) Expired(dst []Action, now time.Time, id ID) []Action {
	c.clock.at(now)
	i, ok := c.find(id)
	if !ok || c.ops[i].state != opWindow {
		return dst
	}
	return c.retire(c.complete(dst, id, result{outcome: DispatchTimeout}), i)
}

// Refused tells the Client that the window does not accept the operation, or that there is no memory
// for its sink. If it was granted, the caller has already returned the grant.
func (c *Client) Refused(dst []Action, now time.Time, id ID) []Action { return c.Expired(dst, now, id) }

// Sealed tells the Client that the blob of a write is ready.
func (c *Client) Sealed(dst []Action, now time.Time, id ID) []Action {
	dst = c.Tick(dst, now)
	i, ok := c.find(id)
	if !ok {
		return dst
	}
	switch o := &c.ops[i]; o.state {
	case opSealing:
		o.state = opPulled
		return append(dst, c.action(SendData, i))
	case opSettled:
		return c.retire(c.complete(dst, id, o.result), i)
	default:
		return dst
	}
}

// Unsent tells the Client that there was no memory for a SendRequest or Seal, so that request or blob was not sent. Reads
// do not need it, because the caller makes their sinks before they are granted.
func (c *Client) Unsent(dst []Action, now time.Time, id ID) []Action {
	dst = c.Tick(dst, now)
	i, ok := c.find(id)
	if !ok {
		return dst
	}
	r := result{outcome: DispatchTimeout}
	switch o := &c.ops[i]; o.state {
	case opSent:
	case opSealing:
		a := c.action(SendStatus, i)
		a.Outcome, a.Reason, a.Invalidate = NACK, TooLate, true
		dst = append(dst, a)
	case opSettled:
		r = o.result
	default:
		return dst
	}
	return c.retire(c.complete(dst, id, r), i)
}

// Opened tells the Client whether the blob of a read was good.
func (c *Client) Opened(dst []Action, now time.Time, id ID, good bool) []Action {
	c.clock.at(now)
	i, ok := c.find(id)
	if !ok || c.ops[i].state != opOpening {
		return dst
	}
	if !good {
		dst = c.release(dst, i, RefundFailed)
		return c.retire(c.complete(dst, id, result{outcome: RemoteAuth, reason: BadData}), i)
	}
	dst = c.release(dst, i, RefundOK)
	return c.retire(c.complete(dst, id, result{}), i)
}

// Revoked tells the Client that a Revoke is done.
func (c *Client) Revoked(dst []Action, now time.Time, id ID) []Action {
	c.clock.at(now)
	i, ok := c.find(id)
	if !ok {
		return dst
	}
	o := &c.ops[i]
	switch o.state {
	case opRecalled:
		if c.phase == phaseEnded {
			return c.waitForServer(dst, i)
		}
		o.state = opLate
		return c.complete(dst, id, result{outcome: Timeout})
	case opWithdrawn:
		dst = c.complete(c.release(dst, i, RefundTimeout), id, result{outcome: Timeout})
		if o.cmd.Kind == Write {
			return c.retire(dst, i)
		}
		o.state = opLate
		return dst
	case opRevoking:
		o.state = opLate
		return dst
	case opRevoked:
		return c.retire(dst, i)
	default:
		return dst
	}
}
