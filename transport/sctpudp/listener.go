package sctpudp

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/eldest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

const (
	// maxAssociations bounds the associations of a listener.
	maxAssociations = 4096
	// setupTime is how long a peer that has begun to use a stream has to request a
	// session on it.
	setupTime = 5 * time.Second
)

// A Listener accepts sessions of peers. All methods may be called from any goroutine.
type Listener struct {
	e       *endpoint
	secret  *secret
	backlog *sctp.Backlog
	asking  eldest.List  // streams on which a session has not been requested yet
	unasked atomic.Int64 // their number, plus those that were given up and have not ended
	limit   int
	ctx     context.Context
	cancel  context.CancelFunc
}

// Listen listens at addr, as [Addr] writes it; the host may be empty, and the UDP port may be 0.
// A Listener at all addresses of the machine answers a peer from the address that the peer used, on
// Linux and if Config.ListenPacket returns a *net.UDPConn; otherwise the system chooses the address.
//
// At most backlog sessions, but at least one, may wait for Accept; further ones are refused by a
// Terminate message (RFC 5043 section 6.4). Peers may begin four times as many streams without
// having requested a session; a further stream replaces the oldest of them.
func Listen(ctx context.Context, cfg Config, addr string, backlog int) (*Listener, error) {
	udp, port, err := splitAddr(addr)
	var e *endpoint
	if err == nil {
		e, err = newEndpoint(ctx, cfg.withDefaults(), "udp", udp, port)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: Network, Err: err}
	}
	l := &Listener{e: e, secret: newSecret(), backlog: sctp.NewBacklog(backlog, cfg.Refused), limit: 4 * max(backlog, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.unassociated, e.outage = l.handshakePacket, l.backlog.SetOutage
	e.start()
	return l, nil
}

// Addr returns the address of the listener, an [Addr].
func (l *Listener) Addr() net.Addr { return l.e.addr }

// Accept returns the next session that a peer requests. When an outage begins, it returns the reason once: see [Listener.Outage].
// After Close the error matches net.ErrClosed.
func (l *Listener) Accept() (*sctp.Request, error) { return l.backlog.Accept() }

// Outage returns why nothing from any peer can be read now, or nil. An outage ends with the next packet that is read.
func (l *Listener) Outage() error { return l.backlog.Outage() }

// Close accepts no more sessions, and refuses those that Accept has not returned. The other
// sessions continue; the socket is closed when the last of them has ended.
func (l *Listener) Close() {
	l.cancel()
	if !l.backlog.Close() {
		return
	}
	for _, a := range l.e.associations() {
		a.Retire()
	}
	l.e.retire()
}

// Over reports whether the Listener and its socket are closed.
func (l *Listener) Over() bool { return l.e.over() }

// End closes the Listener, ends all associations, and waits until they have ended.
func (l *Listener) End() {
	l.Close()
	l.e.close()
}

// handshakePacket receives the packets that belong to no association: those that set one up, and others, which are
// answered as RFC 9260 section 8.4 says. A packet without a tag is an INIT or is ignored (section 8.5.1).
func (l *Listener) handshakePacket(p []byte, w way) {
	c, rest := split(p[headerSize:])
	switch kinds := kindsOf(p); {
	case portsOf(p).destination == 0, kinds.has(chunkAbort):
	case c.kind() == chunkInit:
		if len(rest) == 0 && tagOf(p) == 0 {
			l.greet(p, c, w)
		}
	case tagOf(p) == 0:
	case c.kind() == chunkCookieEcho:
		l.welcome(p, c, w)
	case kinds.has(chunkShutdownAck): // our part of the end was lost
		l.e.send(packet(back(p), tagOf(p), chunkShutdownComplete, flagReflected, nil), w.back())
	case kinds.has(chunkShutdownComplete), kinds.has(chunkError), kinds.has(chunkCookieAck):
	default:
		l.e.send(packet(back(p), tagOf(p), chunkAbort, flagReflected, nil), w.back())
	}
}

// staleCookie is the cause of an ERROR; it does not say how long the cookie has been stale (RFC 9260 section 3.3.10.3).
var staleCookie = []byte{0, 3, 0, 8, 0, 0, 0, 0}

// back returns the ports of an answer.
func back(p []byte) ports {
	at := portsOf(p)
	return ports{at.destination, at.source}
}

// greet answers an INIT. It keeps no state: all of it is in the cookie.
func (l *Listener) greet(p []byte, c chunk, w way) {
	theirs, err := parseInit(c[chunkHeaderSize:])
	if theirs.tag == 0 { // it gets no answer (RFC 9260 section 3.3.2)
		return
	}
	listens := portsOf(p).destination == l.e.addr.Port && l.ctx.Err() == nil
	if err != nil || theirs.adaptation != sctp.Adaptation || !listens {
		l.e.send(packet(back(p), theirs.tag, chunkAbort, 0, nil), w.back())
		return
	}
	ours := newInitiation()
	// No more streams than the peer allows (RFC 9260 section 3.3.3), and the same number each way (RFC 5043 section 8).
	pairs := uint16(streams(&ours, &theirs))
	ours.outbound, ours.inbound = pairs, pairs
	ours.reports = theirs.reports
	ours.cookie = l.secret.bake(&cookie{made: time.Now(), from: w.peer, at: portsOf(p), ours: ours, theirs: theirs})
	l.e.send(packet(back(p), theirs.tag, chunkInitAck, 0, ours.append(nil)), w.back())
}

// welcome establishes the association of a peer that has returned its cookie.
func (l *Listener) welcome(p []byte, c chunk, w way) {
	k, ok := l.secret.open(c[chunkHeaderSize:], w.peer, portsOf(p))
	if !ok || tagOf(p) != k.ours.tag {
		return
	}
	if k.stale(time.Now()) { // the peer may begin anew (RFC 9260 section 5.2.6)
		l.e.send(packet(back(p), k.theirs.tag, chunkError, 0, staleCookie), w.back())
		return
	}
	if !l.e.restarts(peer{w.peer, k.at.source}, k.made) {
		return
	}
	if l.ctx.Err() != nil || l.e.count() >= maxAssociations {
		l.e.send(packet(back(p), k.theirs.tag, chunkAbort, 0, nil), w.back())
		return
	}
	a, err := l.e.establish(w, k.at.source, &k.ours, &k.theirs, time.Since(k.made), l, false)
	if err != nil {
		return
	}
	// The association answers the COOKIE ECHO, and takes the data that may come with it.
	buf := packets.Get().(*[maxPacket]byte)
	a.push(buf, copy(buf[:], p))
}

// admits bounds the streams on which the peer has not requested a session yet. It refuses only while many streams
// that were given up have not ended yet.
func (l *Listener) admits() *turn {
	if l.unasked.Add(1) > int64(2*l.limit) {
		l.unasked.Add(-1)
		return nil
	}
	return l.turn()
}

func (l *Listener) admitted() *turn {
	l.unasked.Add(1)
	return l.turn()
}

// turn returns a turn, which the caller has counted: if there are too many, the newest replaces the oldest. A
// request to a closed Listener is still read, in order to be refused.
func (l *Listener) turn() *turn {
	if l.asking.Len() >= l.limit {
		l.asking.GiveUp()
	}
	until := l.ctx
	if until.Err() != nil {
		until = context.Background()
	}
	until, giveUp := context.WithCancelCause(until)
	ctx, cancel := context.WithTimeout(until, setupTime)
	done := l.asking.Add(func() { giveUp(sctp.ErrGivenUp) })
	return &turn{ctx, func() {
		done()
		cancel()
		giveUp(nil)
		l.unasked.Add(-1)
	}}
}

// asked reads the peer's request for a session.
func (l *Listener) asked(ctx context.Context, s *stream) { l.backlog.Ask(ctx, s) }

// idled ends an association without sessions if the Listener is closed. Otherwise the peer may begin
// another session on it, for a while.
func (l *Listener) idled(a *association) {
	if l.ctx.Err() != nil {
		a.Retire()
	}
}
