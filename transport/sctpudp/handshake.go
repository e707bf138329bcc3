package sctpudp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// ErrNotDDP says that the peer's association is not for DDP: it gave no adaptation
// indication, or another one (RFC 5043 section 11.1).
var ErrNotDDP = errors.New("sctp: the peer gives no indication of DDP")

// The times between two attempts of a handshake, and how many there are.
const (
	firstRetry       = 100 * time.Millisecond
	lastRetry        = 2 * time.Second
	handshakes       = 10
	handshakeBacklog = 16 // packets of the peer that may wait
)

// newInitiation returns the initiation that this side sends.
func newInitiation() initiation {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return initiation{
		tag:      max(binary.BigEndian.Uint32(random[:]), 1),
		tsn:      binary.BigEndian.Uint32(random[4:]),
		window:   receiveBuffer,
		outbound: maxStreams, inbound: maxStreams,
	}
}

// A handshake is a handshake in progress that this side has begun: INIT, INIT ACK, COOKIE ECHO,
// COOKIE ACK (RFC 9260 section 5.1).
type handshake struct {
	e    *endpoint
	peer peer
	ours initiation
	in   chan []byte   // the peer's answers
	rtt  time.Duration // an upper bound: which of several attempts was answered is not known
	none chan struct{} // the peer's port is closed: see refused
}

// refused receives what ICMP has quoted of a packet that found no port, which means here what
// an unreachable protocol means elsewhere (RFC 6951). It is like an ABORT if it quotes the
// INIT, with the tag that only a host which has seen the INIT can know, and if nothing has arrived
// from the peer (RFC 9260 section 10, ICMP6 and ICMP8). After the handshake ICMP is
// ignored.
func (h *handshake) refused(quoted []byte) {
	const least = headerSize + chunkHeaderSize + 4 // up to the tag
	if len(quoted) < least || !bytes.HasPrefix(h.init(), quoted) {
		return
	}
	select {
	case h.none <- struct{}{}:
	default:
	}
}

// init returns the packet that begins the handshake.
func (h *handshake) init() []byte {
	return packet(h.ports(), 0, chunkInit, 0, h.ours.append(nil))
}

// handshakePacket receives the packets that arrive before there is an association. It drops
// packets that are not from the peer or lack our tag.
func (h *handshake) handshakePacket(p []byte, w way) {
	if w.peer != h.peer.udp || back(p) != h.ports() || tagOf(p) != h.ours.tag {
		return
	}
	select {
	case h.in <- append([]byte(nil), p...):
	default:
	}
}

// run performs the handshake, and returns the initiation of the peer.
func (h *handshake) run(ctx context.Context) (*initiation, error) {
	ack, err := h.exchange(ctx, h.init(), h.none, chunkInitAck)
	if err != nil {
		return nil, err
	}
	theirs, err := parseInit(ack[chunkHeaderSize:])
	if err == nil && (theirs.adaptation != sctp.Adaptation || theirs.cookie == nil) {
		err = fmt.Errorf("%w (%d)", ErrNotDDP, theirs.adaptation)
	}
	if err != nil {
		if theirs.tag != 0 { // tell the peer (RFC 9260 section 5.1)
			h.abort(theirs.tag)
		}
		return nil, err
	}
	_, err = h.exchange(ctx, h.echo(&theirs), nil, chunkCookieAck)
	if err != nil && !errors.Is(err, syscall.ECONNREFUSED) { // the peer may have an association, and would keep it for minutes
		h.abort(theirs.tag)
	}
	return &theirs, err
}

func (h *handshake) abort(tag uint32) {
	h.e.send(packet(h.ports(), tag, chunkAbort, 0, nil), h.destination())
}

// echo returns the packet with the cookie, and with an ERROR for the unknown parameters (RFC 9260 section 3.2.2): its
// causes have the same form as in an INIT ACK.
func (h *handshake) echo(theirs *initiation) []byte {
	p := appendChunk(make([]byte, headerSize), chunkCookieEcho, 0, theirs.cookie)
	if n := len(theirs.reports); n > 0 && len(p)+chunkHeaderSize+n <= minPath-ip6HeaderSize-udpHeaderSize {
		p = appendChunk(p, chunkError, 0, theirs.reports)
	}
	seal(p, h.ports(), theirs.tag)
	return p
}

func (h *handshake) destination() destination { return destination{to: h.peer.udp} }

func (h *handshake) ports() ports { return ports{h.e.addr.Port, h.peer.port} }

// exchange sends a packet repeatedly until the answer has arrived, or a report that there will be
// none. A packet that could not be sent counts as lost on the way: the next one may be sent.
func (h *handshake) exchange(ctx context.Context, p []byte, none <-chan struct{}, answer byte) (chunk, error) {
	sent, retry := time.Now(), firstRetry
	var unsent error
	for range handshakes {
		unsent = h.e.trySend(p, h.destination())
		late := time.NewTimer(retry)
		c, err := h.await(ctx, late.C, none, answer)
		late.Stop()
		h.rtt = time.Since(sent)
		if err != nil && ctx.Err() != nil {
			err = unanswered(err, unsent)
		}
		if c != nil || err != nil {
			return c, err
		}
		retry = min(2*retry, lastRetry)
	}
	return nil, unanswered(os.NewSyscallError("connect", syscall.ETIMEDOUT), unsent)
}

// unanswered returns err, which says that no answer has arrived in time, with unsent, the reason why the last packet was not sent.
func unanswered(err, unsent error) error {
	if unsent == nil {
		return err
	}
	return fmt.Errorf("%w, and the last packet could not be sent: %w", err, unsent)
}

// await returns the chunk of this kind, or nil if it is late.
func (h *handshake) await(ctx context.Context, late <-chan time.Time, none <-chan struct{}, kind byte) (chunk, error) {
	for {
		select {
		case p := <-h.in:
			if kindsOf(p).has(chunkAbort) { // control chunks may precede it
				return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
			}
			if c, _ := split(p[headerSize:]); c.kind() == kind {
				return c, nil
			}
		case <-none:
			return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// associate establishes an association with the peer at to, on a socket of its own.
func associate(ctx context.Context, cfg Config, to Addr, o owner) (*association, error) {
	from, err := sctp.Source(to.UDP.Addr())
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Addr: to, Err: err}
	}
	e, err := newEndpoint(ctx, cfg, "udp", netip.AddrPortFrom(from, 0).String(), 0)
	if err != nil {
		return nil, err
	}
	h := &handshake{e: e, peer: peer{to.UDP, to.Port}, ours: newInitiation(), in: make(chan []byte, handshakeBacklog), none: make(chan struct{}, 1)}
	e.unassociated, e.refused = h.handshakePacket, h.refused
	hearRefusals(e.pc, true)
	e.start()
	theirs, err := h.run(ctx)
	hearRefusals(e.pc, false)
	var a *association
	if err == nil {
		a, err = e.establish(way{peer: h.peer.udp}, h.peer.port, &h.ours, theirs, h.rtt, o, true)
	}
	e.retire()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Addr: to, Err: err}
	}
	return a, nil
}
