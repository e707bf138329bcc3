package qpconn

import "fmt"

// A world is an arbiter with everything around it: three waiters, the reader, the writer, the poller, the sweeper, two
// goroutines of the application, the goroutine that closes, and the peer. Each does one step at a time, in any order.
type world struct {
	arbiter snapshot
	waiters [3]waiterState

	reader, writer place
	poster         place // a goroutine that posts work and does not wait
	receives       place // a goroutine that posts receives
	closer         place

	// The connection.
	in       [3]bool // a message for each waiter; the one for the last needs a receive
	held     bool    // that message was read, and has found no receive: the poller does not know of it
	asks     uint8   // messages that ask for an answer
	eof      bool
	full     bool // the network takes no more
	closed   bool
	within   bool // the read of the holder began before Discard
	starts   bool // the connection has not started yet
	armed    bool // in the poller
	fires    bool // the poller has been told, and is about to tell
	wakes    bool // a Wake that no wait has seen yet
	sweeps   bool // the connection is on the sweeper's list
	nudges   uint8
	looks    bool  // a goroutine has stalled and is about to look for a receive
	disarms  bool  // a Disarm that is late, which it must not be: see budget.lateDisarm
	posted   bool  // a receive
	answers  uint8 // to be sent
	own      bool  // the work of the second waiter is to be sent
	expected [3]bool
	finished bool
	fault    string // of a step

	budget budget
}

// A budget is what the world may still do. It bounds the number of states.
type budget struct {
	waits                                 [3]uint8 // by waiter
	cancels, asks, posts, receives, fulls uint8
	eof, close, terminate                 bool
	noReason                              bool // a Wake, and a token, may come at any time
	noArm                                 bool // arming fails from now on
	lateDisarm                            bool // Disarm is done after the mutex was released
}

// A place is where a goroutine is.
type place uint8

const (
	away place = iota
	posts
	sends
	hasShared // has sent a share, and there is more
	hasSent   // found nothing more to send
	comes
	sendsFirst // what was offered when it came
	hasSharedFirst
	hasSentFirst
	registers // looks once more before it sleeps
	sleeps
	wakesUp
	reads
	stalls
	aboutToPark // looks once more before it parks
	parks
	leaves
	closes
)

// A waiterState is one waiter.
type waiterState struct {
	at        place
	done      bool // it has what it waits for
	cancelled bool
	token     bool // Grant, or its completion; it stays until the waiter sleeps
}

func (w *waiterState) receives() bool {
	return w.at == reads || w.at == stalls || w.at == aboutToPark || w.at == parks
}

func (w *waiterState) sends() bool {
	return w.at == sends || w.at == hasShared || w.at == hasSent ||
		w.at == sendsFirst || w.at == hasSharedFirst || w.at == hasSentFirst
}

// The reader is waiter 0 to the arbiter.
const theReader = 0

// A snapshot is an arbiter that can be compared.
type snapshot struct {
	rx     rxState
	tx     txState
	phase  phase
	noArm  bool
	holder uint8
	queue  [3]uint8
}

func (s *snapshot) holds(id uint8) bool { return s.rx >= rxBusy && s.holder == id }

func (s *snapshot) queued(id uint8) bool {
	return s.queue[0] == id || s.queue[1] == id || s.queue[2] == id
}

// step gives the arbiter an event, and carries out its actions except those that the caller itself carries out.
func (s *world) step(event func(a *arbiter[uint8]) do) do {
	var room [4]uint8
	k := &s.arbiter
	a := &arbiter[uint8]{rx: k.rx, tx: k.tx, phase: k.phase, noArm: k.noArm, holder: k.holder, queue: room[:0]}
	for _, w := range k.queue {
		if w != 0 {
			a.queue = append(a.queue, w)
		}
	}
	d := event(a)
	switch {
	case d&doDisarm == 0:
	case s.budget.lateDisarm:
		s.disarms = true
	default:
		s.armed = false
	}
	if d&doArm != 0 {
		if s.closed || s.budget.noArm {
			d = d&^doSweepLater | a.armFailed()
		} else {
			s.armed = true
		}
	}
	s.act(d, a)
	*k = snapshot{rx: a.rx, tx: a.tx, phase: a.phase, noArm: a.noArm, holder: a.holder}
	if !a.held() {
		k.holder = theReader // holder has no meaning
	}
	if len(a.queue) > len(k.queue) {
		s.fault = "a waiter is queued twice"
	}
	copy(k.queue[:], a.queue)
	return d
}

// act does what may be done after the mutex is released.
func (s *world) act(d do, a *arbiter[uint8]) {
	if d&doStartReader != 0 {
		if s.reader != away {
			s.fault = "a second reader is started"
		}
		if len(a.queue) > 0 && s.arbiter.rx != rxStalled {
			s.fault = "a reader is started although a waiter is queued"
		}
		s.reader = reads
	}
	if d&doStartWriter != 0 {
		if s.writer != away {
			s.fault = "a second writer is started"
		}
		s.writer = sends
	}
	if d&doGrant != 0 {
		if a.holder == theReader {
			s.fault = "the right to receive is granted to no waiter"
		} else {
			s.waiters[a.holder-1].token = true
		}
	}
	s.wakes = s.wakes || d&doWake != 0
	s.sweeps = s.sweeps || d&doSweepLater != 0
	if d&doFinish != 0 {
		if s.finished {
			s.fault = "it is finished twice"
		}
		s.finished = true
		for i := range s.waiters { // all work is flushed
			s.complete(i)
		}
	}
}

// complete gives waiter i what it waits for.
func (s *world) complete(i int) {
	w := &s.waiters[i]
	if w.at == away || w.done {
		return
	}
	w.done = true
	if w.at == sleeps {
		w.token = true
	}
}

func (s *world) input() bool { return s.in != [3]bool{} || s.asks > 0 || s.eof }

// unread reports whether there is unread input.
func (s *world) unread() bool {
	in := s.in
	in[needsReceive] = in[needsReceive] && !s.held
	return in != [3]bool{} || s.asks > 0 || s.eof
}

// A stepper collects the steps of a state.
type stepper struct {
	from  *world
	yield func(edge[world])
}

// inner is a step that the program will take.
func (x *stepper) inner(label string, f func(n *world)) { x.add(label, true, f) }

// outer is a step that may or may not come.
func (x *stepper) outer(label string, f func(n *world)) { x.add(label, false, f) }

func (x *stepper) add(label string, inner bool, f func(n *world)) {
	n := *x.from
	f(&n)
	x.yield(edge[world]{n, label, inner})
}

// steps yields all that can happen next.
func (s world) steps(yield func(edge[world])) {
	x := &stepper{&s, yield}
	for i := range s.waiters {
		s.waiterSteps(i, x)
	}
	s.readerSteps(x)
	s.writerSteps(x)
	s.applicationSteps(x)
	s.closerSteps(x)
	s.pollerSteps(x)
	s.peerSteps(x)
}

func (s *world) pollerSteps(x *stepper) {
	if s.disarms {
		x.inner("Disarm, late", func(n *world) { n.disarms, n.armed = false, false })
	}
	if s.armed && !s.fires && (s.unread() || s.closed) {
		x.inner("the kernel tells the poller", func(n *world) { n.armed, n.fires = false, true })
	}
	ready := func(n *world) { n.fires = false; n.step((*arbiter[uint8]).ready) }
	if s.fires {
		x.inner("poller: Ready", ready)
	} else {
		x.outer("poller: Ready for no reason", ready)
	}
	sweep := func(n *world) { n.sweeps = false; n.step((*arbiter[uint8]).sweep) }
	if s.sweeps {
		x.inner("sweeper: Sweep", sweep)
	} else {
		x.outer("sweeper: Sweep for no reason", sweep)
	}
	if s.nudges > 0 {
		x.inner("Nudge", func(n *world) { n.nudges--; n.step((*arbiter[uint8]).nudge) })
	}
	if s.looks {
		x.inner("looks for a receive", func(n *world) {
			n.looks = false
			if n.posted {
				n.step((*arbiter[uint8]).resume)
			}
		})
	}
	if s.starts {
		x.inner("Start", func(n *world) { n.starts = false; n.step((*arbiter[uint8]).start) })
	}
	x.outer("Resume for no reason", func(n *world) { n.step((*arbiter[uint8]).resume) })
	if !s.budget.noReason {
		return
	}
	if !s.wakes && s.arbiter.rx >= rxBusy {
		x.outer("Wake for no reason", func(n *world) { n.wakes = true })
	}
	for i := range s.waiters {
		if w := &s.waiters[i]; w.at == sleeps && !w.token {
			x.outer(fmt.Sprintf("waiter %d: a token for no reason", i+1), func(n *world) { n.waiters[i].token = true })
		}
	}
}

func (s *world) peerSteps(x *stepper) {
	if !s.eof && !s.closed {
		for i := range s.expected {
			if s.expected[i] {
				x.outer(fmt.Sprintf("peer: message for waiter %d", i+1), func(n *world) { n.expected[i], n.in[i] = false, true })
			}
		}
		if s.budget.asks > 0 {
			x.outer("peer: request", func(n *world) { n.budget.asks--; n.asks++ })
		}
		if s.budget.eof {
			x.outer("peer: end of stream", func(n *world) { n.budget.eof, n.eof = false, true })
		}
	}
	if s.full {
		x.outer("peer: makes room", func(n *world) { n.full = false })
	} else if s.budget.fulls > 0 {
		x.outer("network: full", func(n *world) { n.budget.fulls--; n.full = true })
	}
}

func (s *world) waiterSteps(i int, x *stepper) {
	id, w := uint8(i+1), &s.waiters[i]
	name := fmt.Sprintf("waiter %d: ", id)
	at := func(n *world) *place { return &n.waiters[i].at }
	go1 := func(what string, to place) { x.inner(name+what, func(n *world) { *at(n) = to }) }
	if w.at != away && !w.cancelled && s.budget.cancels > 0 {
		x.outer(name+"is cancelled", func(n *world) { n.budget.cancels--; n.waiters[i].cancelled = true; n.nudges++ })
	}
	over := w.done || w.cancelled
	switch w.at {
	case away:
		s.waiterBegins(i, name, x)
	case posts:
		s.posting(name, at, sends, comes, x)
	case sends, hasShared, hasSent:
		s.sending(name, at, senderPlaces{sends, hasShared, hasSent, comes}, false, x)
	case sendsFirst, hasSharedFirst, hasSentFirst:
		s.sending(name, at, senderPlaces{sendsFirst, hasSharedFirst, hasSentFirst, wakesUp}, false, x)
	case comes:
		x.inner(name+"Come", func(n *world) {
			d := n.step(func(a *arbiter[uint8]) do { return a.come(id) })
			*at(n) = registers
			if d&doRead != 0 {
				*at(n) = reads
			}
			if d&doSend != 0 {
				*at(n) = sendsFirst
			}
		})
	case registers:
		if over {
			go1("need not sleep", leaves)
		} else {
			go1("sleeps", sleeps)
		}
	case sleeps:
		if w.token || w.cancelled {
			x.inner(name+"wakes up", func(n *world) { n.waiters[i].token = false; *at(n) = wakesUp })
		}
	case wakesUp:
		switch {
		case over:
			go1("has waited", leaves)
		case s.arbiter.holds(id):
			go1("holds the right", reads)
		default:
			go1("goes back to sleep", registers)
		}
	case reads:
		if over {
			go1("has waited", leaves)
			return
		}
		s.receiving(name, id, at, holderPlaces{send: sendsFirst, lost: registers}, x)
	case stalls:
		s.stalling(name, at, registers, x)
	case aboutToPark:
		if over {
			go1("has waited", leaves)
		} else {
			go1("parks", parks)
		}
	case parks:
		s.parking(name, at, x)
	case leaves:
		for _, reserve := range []bool{false, true} {
			x.inner(fmt.Sprintf("%sLeave reserve=%v", name, reserve), func(n *world) {
				n.step(func(a *arbiter[uint8]) do { return a.leave(id, reserve) })
				n.waiters[i] = waiterState{token: n.waiters[i].token}
			})
		}
	default:
	}
}

// waiterBegins: the first waiter waits for a message of the peer, the second until its work has been sent, the third for
// a message that needs a receive.
func (s *world) waiterBegins(i int, name string, x *stepper) {
	const sender = 1
	if s.budget.waits[i] == 0 || i == sender && s.own {
		return
	}
	x.outer(name+"begins", func(n *world) {
		n.budget.waits[i]--
		w := &n.waiters[i]
		w.at, w.done = comes, n.finished
		switch {
		case n.finished:
		case i == sender:
			n.own, w.at = true, posts
		default:
			n.expected[i] = !n.in[i]
		}
	})
}

// needsReceive is the message that needs a receive.
const needsReceive = 2

// holderPlaces are where a goroutine that reads goes.
type holderPlaces struct{ send, lost place }

// receiving is one read by a holder, and what follows from it.
func (s *world) receiving(name string, id uint8, at func(*world) *place, to holderPlaces, x *stepper) {
	event := func(label string, f func(*arbiter[uint8]) do) {
		x.inner(name+label, func(n *world) {
			*at(n), n.within = to.lost, false
			d := n.step(f)
			if d&doRead != 0 {
				*at(n) = reads
			}
			if d&doPark != 0 {
				*at(n) = aboutToPark
			}
			if d&doSend != 0 {
				*at(n) = to.send
			}
		})
	}
	switch {
	case s.arbiter.phase == phaseDiscard && !s.within:
		s.discarding(id, name, event, x)
		return
	case s.closed:
		event("Over, closed", (*arbiter[uint8]).over)
		if id == theReader && s.arbiter.phase == phaseClosed {
			event("Discarded", (*arbiter[uint8]).discarded)
		}
		if s.in[needsReceive] && !s.posted { // the LLP still holds what it has read
			x.inner(name+"finds no receive, closed", func(n *world) { *at(n), n.within = stalls, false })
		}
		return
	case s.arbiter.phase == phaseDiscard:
		x.inner(name+"finds something", func(n *world) { n.within = false })
		if s.eof {
			event("Over", (*arbiter[uint8]).over)
		}
		return
	}
	for i := range s.in {
		switch {
		case !s.in[i]:
			continue
		case i == needsReceive && !s.posted:
			x.inner(name+"finds no receive", func(n *world) { *at(n), n.held = stalls, true })
			return
		}
		x.inner(fmt.Sprintf("%sdelivers to waiter %d", name, i+1), func(n *world) {
			n.in[i] = false
			if i == needsReceive {
				n.posted, n.held = false, false
			}
			n.complete(i)
		})
		return
	}
	switch {
	case s.asks > 0:
		x.inner(name+"answers, Post", func(n *world) {
			n.asks--
			n.answers++
			if n.step((*arbiter[uint8]).post)&doSend != 0 {
				*at(n) = to.send
			}
		})
	case s.eof:
		event("Over", (*arbiter[uint8]).over)
	case id == theReader:
		event("Empty, lingers", func(a *arbiter[uint8]) do { return a.empty(true) })
		event("Empty", func(a *arbiter[uint8]) do { return a.empty(false) })
	default:
		event("Empty", func(a *arbiter[uint8]) do { return a.empty(false) })
	}
}

// discarding is a read after Discard.
func (s *world) discarding(id uint8, name string, event func(string, func(*arbiter[uint8]) do), x *stepper) {
	switch {
	case id == theReader && s.closed:
		event("Discarded", (*arbiter[uint8]).discarded)
	case id == theReader && (s.in != [3]bool{} || s.asks > 0):
		x.inner(name+"discards", func(n *world) { n.in, n.asks, n.held = [3]bool{}, 0, false })
	case id == theReader && s.eof:
		x.inner(name+"has discarded all, and closes the connection", func(n *world) { n.closed, n.closer = true, closes })
	default:
		event("Empty, lingers", func(a *arbiter[uint8]) do { return a.empty(true) })
		event("Empty", func(a *arbiter[uint8]) do { return a.empty(false) })
	}
}

func (s *world) stalling(name string, at func(*world) *place, lost place, x *stepper) {
	x.inner(name+"Stall", func(n *world) {
		*at(n) = lost
		if n.step((*arbiter[uint8]).stall)&doRead != 0 {
			*at(n) = reads
			return
		}
		n.looks = true
	})
}

func (s *world) parking(name string, at func(*world) *place, x *stepper) {
	if s.wakes || s.input() || s.closed {
		x.inner(name+"Found", func(n *world) {
			n.wakes = false
			n.step((*arbiter[uint8]).found)
			*at(n) = reads
		})
	}
}

func (s *world) readerSteps(x *stepper) {
	const name = "reader: "
	at := func(n *world) *place { return &n.reader }
	switch s.reader {
	case reads:
		s.receiving(name, theReader, at, holderPlaces{send: sends, lost: away}, x)
	case stalls:
		s.stalling(name, at, away, x)
	case aboutToPark:
		x.inner(name+"parks", func(n *world) { n.reader = parks })
	case parks:
		s.parking(name, at, x)
	case sends, hasShared, hasSent:
		s.sending(name, at, senderPlaces{sends, hasShared, hasSent, reads}, false, x)
	default:
	}
}

func (s *world) writerSteps(x *stepper) {
	if s.writer != away {
		s.sending("writer: ", func(n *world) *place { return &n.writer }, senderPlaces{sends, hasShared, hasSent, away}, true, x)
	}
}

func (s *world) applicationSteps(x *stepper) {
	at := func(n *world) *place { return &n.poster }
	switch s.poster {
	case away:
		if s.budget.posts > 0 && !s.finished {
			x.outer("application: queues work", func(n *world) { n.budget.posts--; n.answers++; n.poster = posts })
		}
	case posts:
		s.posting("application: ", at, sends, away, x)
	default:
		s.sending("application: ", at, senderPlaces{sends, hasShared, hasSent, away}, false, x)
	}
	switch {
	case s.receives == posts:
		x.inner("application: Resume", func(n *world) { n.receives = away; n.step((*arbiter[uint8]).resume) })
	case s.budget.receives > 0 && !s.posted:
		x.outer("application: posts a receive", func(n *world) { n.budget.receives--; n.posted, n.receives = true, posts })
	}
}

// closerSteps end the connection, because the application wants it, or because it must end.
func (s *world) closerSteps(x *stepper) {
	must := s.arbiter.phase == phaseOpen && s.arbiter.rx == rxOver || s.arbiter.tx == txClosed
	if s.budget.terminate {
		x.outer("Discard", func(n *world) {
			n.budget.terminate, n.within = false, n.arbiter.rx >= rxBusy
			n.step((*arbiter[uint8]).discard)
		})
	}
	switch s.closer {
	case away:
		if must || s.budget.close || s.arbiter.phase == phaseDiscard { // of which the last is the deadline
			x.add("the connection is closed", must, func(n *world) { n.closed, n.closer = true, closes })
		}
	case closes:
		x.inner("Close", func(n *world) { n.closer = leaves; n.step((*arbiter[uint8]).close) })
	default:
	}
}
