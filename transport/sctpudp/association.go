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
	// tellTime is how long an association that has failed waits for its socket to take the ABORT.
	tellTime = 100 * time.Millisecond
	// nearby is the round trip of a handshake up to which a peer counts as near: then a
	// retransmission that is lost, too, shall not cost the second that RFC 9260 suggests.
	// In pion that can only be said by a bound on the timer, which bounds the back-off, too:
	// a packet each nearbyRTO is no load on so quick a network. nearbyRTO must be longer than
	// a peer delays an acknowledgement, 200 ms.
	// A chunk that is under way alone is not delayed; it is sent again after nearbyProbe.
	nearby      = 10 * time.Millisecond
	nearbyRTO   = 250 * time.Millisecond
	nearbyProbe = 10 * time.Millisecond
	// leastRTO is what a retransmission takes at least where the peer is not near.
	leastRTO = time.Second
	// idleTime is how long a listener keeps an association without a session.
	idleTime = 10 * time.Second
	// lastAcksTime is how long an association without a session waits for the peer to acknowledge what
	// the last one has sent: a peer that reads slowly, or not at all, may say for ever that it has no
	// room. It is longer than an association survives an outage.
	lastAcksTime = 5 * time.Minute
)

// An association is an established association, which drives pion's.
type association struct {
	e               *endpoint
	peer            peer
	way             destination // to peer
	local           Addr        // the one that the peer knows
	ourTag, peerTag uint32
	packetSize      int
	pairs           int // of streams
	owner           owner
	initiator       bool
	made            time.Time // a little before, when the peer had to prove its address
	pion            *pion.Association

	in     chan inbound
	queued atomic.Int64  // octets of memory of what waits in it
	done   chan struct{} // closed when the association has ended

	room  room
	heard atomic.Int64 // how long after made the peer last said something, in nanoseconds

	mu       sync.Mutex
	failure  error
	retired  bool // no session of ours begins any more
	streams  map[uint16]*stream
	free     []uint16  // pairs that were used and may be used again
	next     int       // the first pair that never was
	unread   []*stream // dead ones on which something may have come
	sessions int
	waiting  int       // messages that pion has not sent yet
	idle     time.Time // since when there is none
	flight   flight
	window   uint32 // what the peer had room for when it last said so
	probe    probe
	received uint32 // the TSN up to which we have told the peer that we have everything
	arrived  record
	begun    bool // a DATA chunk of the peer has come
	watch    *time.Timer
	looked   time.Time // when watch has called look last
}

// An owner is the Client or Listener of an association.
type owner interface {
	// admits returns the turn of one more session that the peer may ask for, nil if it may not now.
	admits() *turn
	// admitted does so for one whose first message was taken before, and cannot be refused any more.
	admitted() *turn
	// asked is called, in a goroutine of its own, with a stream that the peer has begun
	// to use. ctx is that of the turn, which ends behind it.
	asked(ctx context.Context, s *stream)
	// idled is called when the last session of an association has ended.
	idled(a *association)
}

// A turn is what a session has until it has been asked for.
type turn struct {
	ctx context.Context // for as long as the peer has time for it
	end func()
}

var (
	errReset    = fmt.Errorf("sctp: association aborted: %w", syscall.ECONNRESET)
	errShutdown = fmt.Errorf("sctp: association shut down: %w", syscall.ECONNRESET)
	errNoAck    = fmt.Errorf("sctp: the peer acknowledges nothing: %w", os.NewSyscallError("write", syscall.ETIMEDOUT))
	errSilent   = fmt.Errorf("sctp: the peer does not answer: %w", os.NewSyscallError("read", syscall.ETIMEDOUT))
)

// establish makes the association that a handshake has agreed on.
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
		pion.WithEnableZeroChecksum(true), // between it and us: see token
		pion.WithLoggerFactory(noLog{}),
	}
	// However long a peer had no room, or no packet has come through, it is asked again while
	// it has time to answer: see look.
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

// hear notes that the peer says something.
func (a *association) hear() { a.heard.Store(int64(time.Since(a.made))) }

// look is called from time to time: it ends an association whose peer is gone, or does not
// take what it has room for, or that is not used, and sends a heartbeat if nothing has come
// for a while. If this process has not run for a while, what the peer has said meanwhile may not
// have been read yet: then it asks the peer, whose time begins anew.
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
	case over: // the peer does not join in the end
		a.fail(net.ErrClosed)
	case unused && idle > idleTime:
		a.Retire()
	case silent > timeout/4:
		a.beat()
	}
}

func (a *association) beat() { a.say(chunkHeartbeat, 0, []byte{0, 1, 0, 8, 0, 0, 0, 0}) }

// say sends a packet of one control chunk.
func (a *association) say(kind, flags byte, value []byte) {
	a.e.send(packet(a.ports(), a.peerTag, kind, flags, value), a.way)
}

// ports are those of what we send.
func (a *association) ports() ports { return ports{a.e.addr.Port, a.peer.port} }

// Retire ends an association that has no session gracefully, when the peer has acknowledged what the
// last one has sent, or after lastAcksTime without it. It opens no session any more. If it has one, which may
// have begun just now, Retire does nothing.
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

// Err is why the association has ended, nil if it has not.
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
	for _, s := range streams { // pion ends what waits only when none of its goroutines waits for the socket
		s.Wake()
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		if !errors.Is(why, errReset) && !errors.Is(why, errShutdown) {
			a.say(chunkAbort, 0, causes(why))
		}
	}()
	go a.leave(told)
}

// leave gives back what the association has, when the peer was told of its end. Where the socket takes no packet, because
// its interface is paused for example, that is not waited for. A goroutine of pion's may wait for the socket then, too, which remove closes
// if it was that of this association alone.
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

// why returns the error of a call on an association that ends, which need not have failed.
func (a *association) why() error {
	if err := a.Err(); err != nil {
		return err
	}
	return errShutdown
}

// Open takes a pair of streams for a session of ours.
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

// newStream makes the stream of a session. The caller holds mu.
func (a *association) newStream(id uint16) *stream {
	s := &stream{a: a, id: id}
	a.streams[id] = s
	a.sessions++
	return s
}

// sight is told of each DATA chunk before pion takes it: at the first one of a session on
// these streams it asks the owner to listen. It reports false if the owner cannot, or there is
// no room, and the peer has to send the chunk again.
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
	if ok && !known { // a chunk that is not taken anyhow gets no turn, which may be that of another peer
		t = a.mayBegin(s)
		ok = t != nil
	}
	if !ok {
		a.mu.Unlock()
		return false
	}
	if !a.begun || c.ppid() == sctp.PPIDControl {
		// The first one is acknowledged at once (RFC 9260 section 5.1), and session control, because a peer may
		// have to wait for that (RFC 5043 section 6.6), or ends the association behind it.
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

// mayBegin returns the turn of a session that the peer begins on a pair of streams, nil if it may not. If its last
// session has ended, as s, the acknowledgement of our last message may still be on its way, but that message must
// have been sent. The caller holds mu.
func (a *association) mayBegin(s *stream) *turn {
	if a.failure != nil || s != nil && s.queued > 0 {
		return nil
	}
	return a.owner.admits()
}

// ask makes the owner listen on a stream that the peer has begun to use. On an association that ends
// there is no session any more.
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

// ended gives a pair of streams back. The caller does not hold mu.
func (a *association) ended(s *stream, clean bool) {
	a.mu.Lock()
	a.sessions--
	last := a.sessions == 0
	a.idle = time.Now()
	anew := clean && s.more() // the peer was quick to begin another one
	if anew && s.queued > 0 {
		anew, clean = false, false // it knows nothing yet of the end of this one
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
		a.nudge() // has discard called
	}
	if last {
		a.owner.idled(a)
	}
}

// discard throws away what has come on dead streams, because what is not read takes room from all
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

// reuse makes the streams of s free for another session when no message of the old one is left
// on them (RFC 5043 section 6.6). The caller holds mu.
func (a *association) reuse(s *stream) {
	if s.state == given && s.messages == 0 && a.streams[s.id] == s {
		delete(a.streams, s.id)
		if a.initiator && !slices.Contains(a.free, s.id) { // the peer may use it as often as it likes
			a.free = append(a.free, s.id)
		}
	}
}
