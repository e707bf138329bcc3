package sctpudp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	pion "github.com/pion/sctp"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/transport/sctp"
)

const (
	// shutdownTime bounds the graceful end of an association that a caller waits for.
	shutdownTime = 500 * time.Millisecond
	// tellTime is how long an association that has failed waits until its socket accepts the ABORT.
	tellTime = 100 * time.Millisecond
	// nearby is the round trip of a handshake up to which a peer counts as near: then a lost
	// retransmission must not cost the second that RFC 9260 suggests. pion allows that only by
	// a bound on the timer, which bounds the back-off, too: a packet each nearbyRTO is no load
	// on so quick a network. nearbyRTO must be longer than a peer delays an acknowledgement,
	// 200 ms.
	// The acknowledgement of a single outstanding chunk is not delayed; the chunk is sent again after nearbyProbe.
	nearby      = 10 * time.Millisecond
	nearbyRTO   = 250 * time.Millisecond
	nearbyProbe = 10 * time.Millisecond
	// leastRTO is the shortest retransmission time of a peer that is not near.
	leastRTO = time.Second
	// idleTime is how long a listener keeps an association without a session.
	idleTime = 10 * time.Second
	// lastAcksTime is how long an association without a session waits until the peer has acknowledged
	// what the last session sent: a peer that reads slowly, or not at all, may report for ever that it
	// has no room. It is longer than an association survives an outage.
	lastAcksTime = 5 * time.Minute
)

// An association is an established association. It drives an association of pion.
type association struct {
	e               *endpoint
	peer            peer
	way             destination // to peer
	local           Addr        // the local address that the peer knows
	ourTag, peerTag uint32
	packetSize      int
	pairs           int // of streams
	owner           owner
	initiator       bool
	made            time.Time // a little before, when the peer had to prove its address
	pion            *pion.Association

	in     chan inbound
	queued atomic.Int64  // octets of memory of the packets that wait in it
	done   chan struct{} // closed when the association has ended

	room  room
	heard atomic.Int64 // how long after made the peer last said something, in nanoseconds

	mu       sync.Mutex
	failure  error
	retired  bool // no session of ours begins any more
	streams  map[uint16]*stream
	free     []uint16  // pairs that were used and may be used again
	next     int       // the first pair that was never used
	unread   []*stream // dead streams on which something may have arrived
	sessions int
	waiting  int       // messages that pion has not sent yet
	idle     time.Time // since when there is no session
	flight   flight
	window   uint32 // the room that the peer last reported
	probe    probe
	received uint32 // the TSN up to which we have acknowledged everything to the peer
	arrived  record
	begun    bool // a DATA chunk of the peer has arrived
	watch    *time.Timer
	looked   time.Time // when watch last called look
}

// An owner is the Client or Listener of an association.
type owner interface {
	// admits returns the turn of one more session that the peer may request, or nil if it may not now.
	admits() *turn
	// admitted is like admits, for a session whose first message was already taken, and that cannot be refused.
	admitted() *turn
	// asked is called, in a goroutine of its own, with a stream that the peer has begun
	// to use. ctx is the context of the turn, which ends after the call.
	asked(ctx context.Context, s *stream)
	// idled is called when the last session of an association has ended.
	idled(a *association)
}

// A turn belongs to a session until the peer has requested it.
type turn struct {
	ctx context.Context // ends with the time that the peer has for its request
	end func()
}

var (
	errReset    = fmt.Errorf("sctp: association aborted: %w", syscall.ECONNRESET)
	errShutdown = fmt.Errorf("sctp: association shut down: %w", syscall.ECONNRESET)
	errNoAck    = fmt.Errorf("sctp: the peer acknowledges nothing: %w", os.NewSyscallError("write", syscall.ETIMEDOUT))
	errSilent   = fmt.Errorf("sctp: the peer does not answer: %w", os.NewSyscallError("read", syscall.ETIMEDOUT))
)

// establish creates the association that a handshake has agreed on.
func (e *endpoint) establish(w way, port uint16, ours, theirs *initiation, rtt time.Duration, o owner, initiator bool) (*association, error) {
	a := &association{
		e: e, peer: peer{w.peer, port}, way: w.back(), local: w.local(e.addr), ourTag: ours.tag, peerTag: theirs.tag,
		owner: o, initiator: initiator, made: time.Now().Add(-rtt),
		packetSize: packetSize(w.peer.Addr()), pairs: streams(ours, theirs),
		in: make(chan inbound, inboundQueue), done: make(chan struct{}),
		streams: make(map[uint16]*stream), idle: time.Now(), looked: time.Now(),
		flight: flight{next: ours.tsn}, window: theirs.window, received: theirs.tsn - 1, arrived: record{next: theirs.tsn},
	}
	a.hear()
	c := &conn{a: a, closed: make(chan struct{}), up: make(chan struct{}), sacked: make(chan struct{}, 1)}
	options := []pion.ClientOption{
		pion.WithSNAP(ours.token(), theirs.token()),
		pion.WithNetConn(c),
		pion.WithMTU(uint32(a.packetSize)),
		pion.WithMaxReceiveBufferSize(receiveBuffer),
		pion.WithEnableInterleaving(false),
		pion.WithEnableZeroChecksum(true), // between pion and this package: see token
		pion.WithLoggerFactory(noLog{}),
	}
	// However long a peer had no room, or no packet got through, it is probed again while it
	// still has time to answer: see look.
	last := max(e.cfg.PeerTimeout/4, leastRTO)
	if rtt < nearby {
		last = nearbyRTO
		options = append(options, pion.WithRACKOptions(pion.WithRackWCDelAck(nearbyProbe)))
	}
	options = append(options, pion.WithRTOMax(float64(last.Milliseconds())))
	p, err := pion.ClientWithOptions(options...)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.pion = p
	a.watch = time.AfterFunc(e.cfg.PeerTimeout/4, a.look)
	a.mu.Unlock()
	close(c.up)
	if err := e.add(a); err != nil {
		a.watch.Stop()
		a.mu.Lock()
		a.failure = err
		a.mu.Unlock()
		close(a.done)
		_ = p.Close()
		return nil, err
	}
	return a, nil
}

// hear records that a packet of the peer has arrived.
func (a *association) hear() { a.heard.Store(int64(time.Since(a.made))) }

// look is called from time to time. It ends an association whose peer is gone, or does not
// accept what it has room for, or that is not used. It sends a heartbeat if nothing has arrived
// for a while. If this process has not run for a while, packets of the peer may not have been
// read yet: look then sends a heartbeat, and the peer's time begins anew.
func (a *association) look() {
	timeout := a.e.cfg.PeerTimeout
	silent := time.Since(a.made) - time.Duration(a.heard.Load())
	a.mu.Lock()
	if a.failure != nil {
		a.mu.Unlock()
		return
	}
	a.watch.Reset(timeout / 4)
	stopped := time.Since(a.looked) > timeout/2
	a.looked = time.Now()
	if stopped {
		a.hear()
		a.flight.since = a.looked
	}
	unused := a.sessions == 0 && len(a.flight.chunks) == 0
	idle := min(time.Since(a.idle), time.Since(a.flight.since))
	over := unused && idle > idleTime+timeout || a.sessions == 0 && time.Since(a.idle) > lastAcksTime
	noAck := a.flight.waits() > timeout && a.window >= uint32(a.packetSize)
	a.mu.Unlock()
	switch {
	case stopped:
		a.beat()
	case silent > timeout:
		a.fail(errSilent)
	case noAck:
		a.fail(errNoAck)
	case over: // the peer does not complete the graceful end
		a.fail(net.ErrClosed)
	case unused && idle > idleTime:
		a.Retire()
	case silent > timeout/4:
		a.beat()
	}
}

func (a *association) beat() { a.say(chunkHeartbeat, []byte{0, 1, 0, 8, 0, 0, 0, 0}) }

// say sends a packet of one control chunk.
func (a *association) say(kind byte, value []byte) {
	a.e.send(packet(a.ports(), a.peerTag, kind, 0, value), a.way)
}

// ports returns the ports of the packets that this side sends.
func (a *association) ports() ports { return ports{a.e.addr.Port, a.peer.port} }

// Retire ends an association that has no session: gracefully, when the peer has acknowledged what the
// last session sent, or else after lastAcksTime. No session is opened any more. If the association has
// a session, which may have begun just now, Retire does nothing.
func (a *association) Retire() {
	a.mu.Lock()
	unused := a.sessions == 0
	if unused {
		a.retired = true
	}
	a.mu.Unlock()
	if unused {
		go a.shutdown()
	}
}

// End ends the association of a client, which has a socket of its own.
func (a *association) End() { a.e.close() }

// Err returns why the association has ended, or nil if it has not.
func (a *association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// over reports whether the association has failed, without its lock.
func (a *association) over() bool { return closed.Is(a.done) }

// shutdown ends the association gracefully, unless that has begun already.
func (a *association) shutdown() {
	if a.pion.Shutdown(context.Background()) == nil {
		a.fail(errShutdown)
	}
}

// fail ends the association at once. It tells the peer, unless the peer has ended it.
func (a *association) fail(why error) {
	a.mu.Lock()
	if a.failure != nil {
		a.mu.Unlock()
		return
	}
	a.failure = why
	a.watch.Stop()
	streams := slices.Collect(maps.Values(a.streams))
	a.mu.Unlock()
	close(a.done)
	for _, s := range streams { // pion ends its waiting calls only when none of its goroutines waits for the socket
		s.Wake()
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		if !errors.Is(why, errReset) && !errors.Is(why, errShutdown) {
			a.say(chunkAbort, causes(why))
		}
	}()
	go a.leave(told)
}

// leave releases what the association has, after the peer was told of its end, but waits at most tellTime for that: the
// socket may accept no packet, for example because its interface is paused. A goroutine of pion may then wait for the socket,
// too; remove closes it if it belongs to this association alone.
func (a *association) leave(told <-chan struct{}) {
	late := time.NewTimer(tellTime)
	defer late.Stop()
	select {
	case <-told:
	case <-late.C:
	}
	a.e.remove(a)
	_ = a.pion.Close()
	a.e.running.Done()
}

// why returns the error of a call on an association that is ending, which need not have failed.
func (a *association) why() error {
	if err := a.Err(); err != nil {
		return err
	}
	return errShutdown
}

// Open returns a pair of streams for a session that this side opens.
func (a *association) Open() (sctp.Stream, bool) {
	s, ok := a.take()
	if !ok {
		return nil, false
	}
	if s.attach() != nil { // the association ends
		s.Release(true) // nothing was sent on it, and there is nothing to be read from it
		return nil, false
	}
	return s, true
}

func (a *association) take() (*stream, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retired || a.failure != nil {
		return nil, false
	}
	for {
		var id uint16
		switch {
		case len(a.free) > 0:
			id, a.free = a.free[len(a.free)-1], a.free[:len(a.free)-1]
		case a.next < a.pairs:
			id = uint16(a.next)
			a.next++
		default:
			return nil, false
		}
		if a.streams[id] == nil { // the peer may have begun to use it
			return a.newStream(id), true
		}
	}
}

// newStream creates the stream of a session. The caller holds mu.
func (a *association) newStream(id uint16) *stream {
	s := &stream{a: a, id: id}
	a.streams[id] = s
	a.sessions++
	return s
}

// sight is called for each DATA chunk before pion takes it. At the first chunk of a session on
// these streams it asks the owner to listen. It reports false if the owner cannot, or there is
// no room, and the peer must send the chunk again.
func (a *association) sight(c chunk) (ok bool) {
	id := c.stream()
	a.mu.Lock()
	if a.arrived.known(c.tsn()) {
		a.mu.Unlock()
		c[1] |= flagImmediate // our acknowledgement was lost: another is due at once (RFC 9260 section 6.2)
		return true
	}
	s := a.streams[id]
	known := s != nil && s.state != given
	ok = !a.arrived.beyond(c.tsn()) && a.room.left()
	var t *turn
	if ok && !known { // a chunk that is refused anyhow gets no turn, which another peer may need
		t = a.mayBegin(s)
		ok = t != nil
	}
	if !ok {
		a.mu.Unlock()
		return false
	}
	if !a.begun || c.ppid() == sctp.PPIDControl {
		// The first chunk is acknowledged at once (RFC 9260 section 5.1). So is session control, because a peer may
		// have to wait for that (RFC 5043 section 6.6), or ends the association after it.
		a.begun = true
		c[1] |= flagImmediate
	}
	a.arrived.take(c.tsn())
	a.room.take(c)
	if !known {
		s = a.newStream(id)
	}
	s.came(c)
	if s.state == dead && !slices.Contains(a.unread, s) {
		a.unread = append(a.unread, s)
	}
	a.mu.Unlock()
	if !known {
		a.ask(s, t)
	}
	return true
}

// mayBegin returns the turn of a session that the peer begins on a pair of streams, or nil if it may not. s is the last
// session on the pair, which has ended, or nil. The acknowledgement of our last message on s may still be on its way,
// but that message must have been sent. The caller holds mu.
func (a *association) mayBegin(s *stream) *turn {
	if a.failure != nil || s != nil && s.queued > 0 {
		return nil
	}
	return a.owner.admits()
}

// ask makes the owner listen on a stream that the peer has begun to use. An association that is ending
// has no more sessions.
func (a *association) ask(s *stream, t *turn) {
	if s.attach() != nil {
		t.end()
		a.mu.Lock()
		a.sessions--
		a.mu.Unlock()
		return
	}
	go func() {
		defer t.end()
		a.owner.asked(t.ctx, s)
	}()
}

// ended releases a pair of streams. The caller does not hold mu.
func (a *association) ended(s *stream, clean bool) {
	a.mu.Lock()
	a.sessions--
	last := a.sessions == 0
	a.idle = time.Now()
	anew := clean && s.more() // the peer has already begun another session
	if anew && s.queued > 0 {
		anew, clean = false, false // it cannot know of the end of this session yet
	}
	if clean {
		s.state = given
		a.reuse(s)
	} else {
		s.state = dead
		_ = s.pion.SetReadDeadline(time.Now()) // never fails: from now on it is read without waiting
		a.unread = append(a.unread, s)
	}
	var next *stream
	if anew {
		next = a.newStream(s.id)
		next.incoming, next.whole = s.incoming-s.taken.Load(), s.whole-s.taken.Load()
	}
	a.mu.Unlock()
	switch {
	case next != nil:
		a.ask(next, a.owner.admitted())
		return
	case !clean:
		a.nudge() // causes a call of discard
	}
	if last {
		a.owner.idled(a)
	}
}

// discard discards what has arrived on dead streams, because unread messages take room from all
// sessions. Read calls it, when pion has taken all that was handed to it.
func (a *association) discard() {
	a.mu.Lock()
	unread := a.unread
	a.unread = nil
	a.mu.Unlock()
	for _, s := range unread {
		s.discard()
	}
}

// reuse frees the streams of s for another session if all messages of the old session are
// acknowledged (RFC 5043 section 6.6). The caller holds mu.
func (a *association) reuse(s *stream) {
	if s.state == given && s.messages == 0 && a.streams[s.id] == s {
		delete(a.streams, s.id)
		if a.initiator && !slices.Contains(a.free, s.id) { // the peer may use it as often as it likes
			a.free = append(a.free, s.id)
		}
	}
}
