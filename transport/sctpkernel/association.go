package sctpkernel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// An association is one socket, with the goroutine that reads it.
type association struct {
	sock      *socket
	owner     owner
	initiator bool

	up   chan struct{} // closed when the peer has given the indication of DDP
	done chan struct{} // closed when the association has ended, and nothing runs for it

	// Set when up is closed.
	local, remote Addr
	pairs         int // of streams
	largest       int // message

	held hold
	out  outbox

	mu        sync.Mutex
	failure   error
	retired   bool               // no session of ours begins any more
	streams   map[uint16]*stream // of sessions, and those that no session can use any more
	used      []*stream          // released by sessions, the oldest first, each pair once
	next      int                // the first pair that was never used
	sessions  int
	idle      time.Time   // since when there is no session
	idleTimer *time.Timer // ends an unused association whose peer opens the sessions
}

// An owner is the Client or Listener of an association.
type owner interface {
	// asked is called by the goroutine that reads the association, with a stream on which the
	// peer has sent a first message. It does not wait.
	asked(s *stream)
	// idled is called when the last session of an association has ended.
	idled(a *association)
	// ended is called when the association has ended.
	ended(a *association)
}

// start begins to read.
func start(sock *socket, o owner, initiator bool) *association {
	a := &association{
		sock: sock, owner: o, initiator: initiator,
		up: make(chan struct{}), done: make(chan struct{}),
		streams: make(map[uint16]*stream), idle: time.Now(),
	}
	a.held.init()
	a.out.sock, a.out.fail = sock, a.fail
	if !initiator {
		a.mu.Lock()
		a.idleTimer = time.AfterFunc(idleTime, a.retireIfUnused)
		a.mu.Unlock()
	}
	go a.run()
	return a
}

// run reads the association to its end.
func (a *association) run() {
	err := a.greet()
	for err == nil {
		err = a.receive()
	}
	a.fail(err)
	a.out.wait()
	a.owner.ended(a)
	close(a.done)
}

// greet waits until the association is established, and checks the peer's adaptation
// indication. The kernel reports that right after the association's start, before any message:
// if it is missing then, it will not come.
func (a *association) greet() error {
	m, err := a.sock.receive(true)
	if err != nil {
		return err
	}
	defer m.free()
	n := notification(m.bytes())
	if !m.notification || n.kind() != notifyAssociation {
		return ErrNotDDP
	}
	if n.state() != stateUp {
		return a.ended(n)
	}
	a.pairs = min(n.pairs(), maxStreams)
	if err := a.identify(); err != nil {
		return err
	}
	close(a.up)
	return nil
}

func (a *association) identify() error {
	given, err := a.indication()
	if err != nil {
		return err
	}
	if given != sctp.Adaptation {
		return fmt.Errorf("%w (%d)", ErrNotDDP, given)
	}
	if a.local, err = a.sock.addrs(localAddrs); err != nil {
		return err
	}
	if a.remote, err = a.sock.addrs(peerAddrs); err != nil {
		return err
	}
	whole, err := a.sock.unfragmented()
	a.largest = maxMessage(whole)
	return err
}

// indication returns the adaptation indication of the peer, or 0 if it sent none.
func (a *association) indication() (uint32, error) {
	m, err := a.sock.receive(false)
	if errors.Is(err, transport.ErrAgain) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer m.free()
	n := notification(m.bytes())
	if !m.notification || n.kind() != notifyAdaptation {
		return 0, nil
	}
	return n.indication(), nil
}

// sackSize is the space that is left for an acknowledgement beside a message (RFC 5043 section 9).
const sackSize = 16

// maxMessage returns the size of the longest message that is neither fragmented nor longer than
// the largest buffer.
func maxMessage(unfragmented int) int {
	return max(min(unfragmented-sackSize, classes[len(classes)-1]-minNotification), sctp.MinMessage) &^ 3
}

// receive takes one message, or one notification.
func (a *association) receive() error {
	m, err := a.sock.receive(true)
	if err != nil {
		return err
	}
	if !m.notification {
		return a.dispatch(m.fitted())
	}
	defer m.free()
	n := notification(m.bytes())
	if n.kind() != notifyAssociation || n.state() == stateUp {
		return nil
	}
	return a.ended(n)
}

// ended returns the error of an association whose end a notification reports. The error of
// the socket, if there is one, is more precise.
func (a *association) ended(n notification) error {
	switch n.state() {
	case stateRestart:
		return errRestart
	case stateShut:
		return errShutdown
	}
	m, err := a.sock.receive(false)
	switch {
	case err == nil:
		m.free()
	case !errors.Is(err, transport.ErrAgain) && !errors.Is(err, io.EOF):
		return err
	case n.state() == stateCannotStart:
		return os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return errReset
}

// dispatch hands a message to the session of its stream. A message on a stream without a
// session begins one.
func (a *association) dispatch(m *message) error {
	a.held.take(m.cost())
	if int(m.stream) >= a.pairs {
		return errStream
	}
	a.mu.Lock()
	s := a.streams[m.stream]
	begins := s == nil
	if begins {
		s = a.newStream(m.stream)
	}
	dead := s.dead
	if !dead {
		s.in.put(m)
	}
	a.mu.Unlock()
	switch {
	case dead:
		a.drop(m)
	case begins:
		a.owner.asked(s)
	}
	return nil
}

// drop discards a message.
func (a *association) drop(m *message) {
	a.held.give(m.cost())
	m.free()
}

// newStream creates the stream of a session. The caller holds mu.
func (a *association) newStream(id uint16) *stream {
	s := &stream{a: a, id: id}
	s.in.init()
	if a.failure != nil {
		s.in.close(a.failure)
	}
	a.streams[id] = s
	a.sessions++
	if a.idleTimer != nil {
		a.idleTimer.Stop()
	}
	return s
}

// Open returns a pair of streams for a session that this side opens.
func (a *association) Open() (sctp.Stream, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retired || a.failure != nil {
		return nil, false
	}
	for {
		id, ok := a.freePair()
		if !ok {
			return nil, false
		}
		if a.streams[id] == nil { // the peer may have begun to use it
			return a.newStream(id), true
		}
	}
}

// freePair returns a pair that may be used. A pair that was used before may be used again only
// when all that was sent on it is acknowledged, above all its Terminate, which may still wait
// for room (RFC 5043 section 6.6). The caller holds mu.
func (a *association) freePair() (uint16, bool) {
	if len(a.used) > 0 && a.out.allAcked(a.used[0]) {
		id := a.used[0].id
		a.used = a.used[1:]
		return id, true
	}
	for a.next < a.pairs {
		id := uint16(a.next)
		a.next++
		if !slices.ContainsFunc(a.used, func(s *stream) bool { return s.id == id }) { // nor by the peer
			return id, true
		}
	}
	return 0, false
}

// release releases a pair of streams.
func (a *association) release(s *stream, clean bool) {
	a.mu.Lock()
	a.sessions--
	last := a.sessions == 0
	a.idle = time.Now()
	rest := s.in.takeAll()
	var next *stream
	switch {
	case !clean:
		s.dead = true
	case a.initiator:
		delete(a.streams, s.id)
		// Each pair once: the peer may have used it as well, any number of times.
		a.used = append(slices.DeleteFunc(a.used, func(u *stream) bool { return u.id == s.id }), s)
	default:
		delete(a.streams, s.id)
		if len(rest) > 0 { // the peer has already begun another session
			next = a.newStream(s.id)
			for _, m := range rest {
				next.in.put(m)
			}
		}
	}
	if last && next == nil && a.idleTimer != nil && a.failure == nil {
		a.idleTimer.Reset(idleTime)
	}
	a.mu.Unlock()
	if next != nil {
		a.owner.asked(next)
		return
	}
	for _, m := range rest {
		a.drop(m)
	}
	if last {
		a.owner.idled(a)
	}
}

// Err returns why the association has ended, or nil if it has not.
func (a *association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// retireIfUnused is called when there has been no session for a while. The peer may still be reading
// what the last session sent: for the peer that session continues, and it may request another one.
func (a *association) retireIfUnused() {
	sent := a.out.allSent()
	a.mu.Lock()
	over := sent || time.Since(a.idle) > lastAcksTime
	if !over {
		a.idleTimer.Reset(idleTime)
	}
	a.mu.Unlock()
	if over {
		a.Retire()
	}
}

// Retire gracefully ends an association that has no session, when the peer has acknowledged what the
// last session sent, or aborts it lastAcksTime after the end of that session. No session is opened
// any more. If the association has a session, which may have begun just now, Retire does nothing.
func (a *association) Retire() {
	a.mu.Lock()
	unused, limit := a.sessions == 0, time.Until(a.idle.Add(lastAcksTime))
	if unused {
		a.retired = true
	}
	a.mu.Unlock()
	if unused {
		go a.shutdown(limit)
	}
}

// End ends the association, gracefully if the peer cooperates, and returns when it has
// ended.
func (a *association) End() { a.shutdown(shutdownTime) }

// shutdown ends the association gracefully when the peer has acknowledged everything: after a shutdown
// the kernel accepts no Terminate, and gives up a peer that has no room for what is left. After limit
// shutdown aborts the association.
func (a *association) shutdown(limit time.Duration) {
	late := time.AfterFunc(limit, func() { a.fail(net.ErrClosed) })
	defer late.Stop()
	a.await(nil, a.out.allSent)
	a.sock.shutdown()
	<-a.done
}

// The times between two checks of what is acknowledged.
const (
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// await polls cond, which depends on what is acknowledged, because the kernel does not report
// acknowledgements. It reports false if the association has failed first, or done is closed.
func (a *association) await(done <-chan struct{}, cond func() bool) bool {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		if a.Err() != nil {
			return false
		}
		if cond() {
			return true
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-done:
			t.Stop()
			return false
		}
	}
}

// fail ends the association at once. It tells the peer, unless the peer has ended it.
func (a *association) fail(why error) {
	if errors.Is(why, io.EOF) {
		why = errShutdown
	}
	a.mu.Lock()
	if a.failure != nil {
		a.mu.Unlock()
		return
	}
	a.failure = why
	if a.idleTimer != nil {
		a.idleTimer.Stop()
	}
	for _, s := range a.streams {
		s.in.close(why)
	}
	a.mu.Unlock()
	a.held.close()
	a.out.close()
	if errors.Is(why, errShutdown) {
		a.sock.close()
	} else {
		a.sock.abort()
	}
}
