package sctpudp

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// Config configures a Client or a Listener. The zero value is valid.
type Config struct {
	// PeerTimeout is how long a peer may send nothing, or acknowledge nothing although its
	// window is open, before its association ends, which is at most a quarter later; 0 means
	// 15 s. Heartbeats keep an association without messages alive. If this process does not run for
	// half of that time, the peer's time begins anew.
	PeerTimeout time.Duration
	// ListenPacket, if not nil, opens the UDP sockets instead of a net.ListenConfig. A
	// socket that embeds a *net.UDPConn gets the large buffers that the throughput depends
	// on.
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	// Refused, if not nil, is called for each session that a peer has begun to request and that a Listener does not return.
	// It should be fast.
	Refused func(remote net.Addr, cause error)
}

const defaultPeerTimeout = 15 * time.Second

func (c Config) withDefaults() Config {
	if c.PeerTimeout <= 0 {
		c.PeerTimeout = defaultPeerTimeout
	}
	if c.ListenPacket == nil {
		c.ListenPacket = new(net.ListenConfig).ListenPacket
	}
	return c
}

// An endpoint is a UDP socket with the associations that use it. It passes a packet that belongs
// to none of them to unassociated.
type endpoint struct {
	cfg          Config
	pc           net.PacketConn
	addr         Addr
	unassociated func(p []byte, w way)
	refused      func(quoted []byte) // called for a packet that found no port; nil: ignored
	outage       func(err error)     // called when nothing can be read, with nil when it can again
	oob          []byte              // for the address to which a packet was sent; nil: there is only one

	mu      sync.Mutex
	byTag   map[uint32]*association // by our own verification tag
	byPeer  map[peer]*association
	closing bool // the endpoint ends with the last association
	running sync.WaitGroup
}

// A peer is where an association's packets come from.
type peer struct {
	udp  netip.AddrPort
	port uint16
}

const (
	// errorPause is how long the reader pauses after an error of the socket.
	errorPause = time.Millisecond
	// outageErrors is how many consecutive errors no longer count as errors of single packets.
	outageErrors = 100
)

// A buffered socket can have larger buffers: a net.UDPConn, or a type that embeds one.
type buffered interface {
	SetReadBuffer(octets int) error
	SetWriteBuffer(octets int) error
	syscall.Conn
}

// socketBuffer is the buffer size that is requested for a socket. The system may give less.
const socketBuffer = 4 << 20

func newEndpoint(ctx context.Context, cfg Config, network, address string, port uint16) (*endpoint, error) {
	pc, err := cfg.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if b, ok := pc.(buffered); ok {
		enlarge(b)
	}
	e := &endpoint{
		cfg: cfg, pc: pc, addr: addrOf(pc.LocalAddr(), port), outage: func(error) {},
		byTag: make(map[uint32]*association), byPeer: make(map[peer]*association),
	}
	if _, ok := pc.(*net.UDPConn); ok && e.addr.UDP.Addr().IsUnspecified() && hearAddresses(pc) {
		e.oob = make([]byte, oobSize)
	}
	return e, nil
}

// start begins to read.
func (e *endpoint) start() { e.running.Go(e.read) }

var packets = sync.Pool{New: func() any { return new([maxPacket]byte) }}

// read hands each packet to its association, or to unassociated, until the socket is closed.
func (e *endpoint) read() {
	failures := 0 // consecutive
	for {
		buf := packets.Get().(*[maxPacket]byte)
		n, w, err := e.readFrom(buf[:])
		raceorder.Receive()
		if err == nil {
			if failures >= outageErrors {
				e.outage(nil)
			}
			failures = 0
		}
		switch {
		case err == nil && valid(buf[:n]):
			if e.sort(buf, n, w) {
				continue
			}
		case errors.Is(err, net.ErrClosed):
			packets.Put(buf)
			return
		case err != nil: // of one packet, for example reported by ICMP: neither end nor spin
			if e.refused != nil {
				refusals(e.pc, e.refused)
			}
			if failures++; failures == outageErrors {
				e.outage(err)
			}
			time.Sleep(errorPause)
		}
		packets.Put(buf)
	}
}

func (e *endpoint) readFrom(b []byte) (int, way, error) {
	u, ok := e.pc.(*net.UDPConn)
	switch {
	case !ok:
		n, from, err := e.pc.ReadFrom(b)
		if err != nil {
			return n, way{}, err
		}
		return n, way{peer: unmap(from)}, nil
	case e.oob == nil:
		n, from, err := u.ReadFromUDPAddrPort(b)
		return n, way{peer: unmapped(from)}, err
	}
	n, oob, _, from, err := u.ReadMsgUDPAddrPort(b, e.oob)
	return n, way{unmapped(from), addressOf(e.oob[:oob])}, err
}

// send sends a packet. If that fails the packet is lost.
func (e *endpoint) send(p []byte, d destination) { _ = e.trySend(p, d) }

// trySend is like send, but returns why the packet is lost.
func (e *endpoint) trySend(p []byte, d destination) (err error) {
	raceorder.Send()
	u, ok := e.pc.(*net.UDPConn)
	switch {
	case !ok:
		_, err = e.pc.WriteTo(p, net.UDPAddrFromAddrPort(d.to))
	case d.oob == nil:
		_, err = u.WriteToUDPAddrPort(p, d.to)
	default:
		_, _, err = u.WriteMsgUDPAddrPort(p, d.oob, d.to)
	}
	return err
}

// sort finds the association of a valid packet by the tag that we gave to its peer: a sender
// that does not know the tag reaches no association. It reports true if buf no longer belongs
// to the caller.
func (e *endpoint) sort(buf *[maxPacket]byte, n int, w way) (taken bool) {
	p := buf[:n]
	at := portsOf(p)
	switch {
	case at.source == 0:
		return false
	case at.destination != e.addr.Port: // of no association
		e.unassociated(p, w)
		return false
	}
	sender := peer{w.peer, at.source}
	e.mu.Lock()
	a := e.byTag[tagOf(p)]
	if a == nil && reflected(p) {
		if b := e.byPeer[sender]; b != nil && b.peerTag == tagOf(p) {
			a = b
		}
	}
	e.mu.Unlock()
	if a == nil {
		e.unassociated(p, w)
		return false
	}
	return a.peer == sender && a.push(buf, n)
}

// reflected reports whether p ends an association that its sender does not know, and so
// has the tag of the other direction (RFC 9260 section 8.5.1). A SHUTDOWN COMPLETE is
// alone in its packet, and everything after an ABORT is ignored.
func reflected(p []byte) bool {
	c, rest := split(p[headerSize:])
	ends := c.kind() == chunkAbort || c.kind() == chunkShutdownComplete && len(rest) == 0
	return ends && c[1]&flagReflected != 0
}

// restarts reports whether a cookie may begin an association: not if it was made before an
// existing association with the same peer. The packet was then delayed, and does not mean
// that the peer has restarted (RFC 9260 section 5.2.4).
func (e *endpoint) restarts(sender peer, made time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.byPeer[sender]
	return a == nil || made.After(a.made)
}

// add adds an association. If there is an older one with the same peer, the peer has
// restarted, and add ends the older one.
func (e *endpoint) add(a *association) error {
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return net.ErrClosed
	}
	if e.byTag[a.ourTag] != nil {
		e.mu.Unlock()
		return errTag
	}
	old := e.byPeer[a.peer]
	e.byTag[a.ourTag], e.byPeer[a.peer] = a, a
	e.running.Add(1)
	e.mu.Unlock()
	if old != nil {
		old.fail(errReset)
	}
	return nil
}

var errTag = errors.New("sctp: verification tag in use")

// remove removes an association, and closes the socket of a closing endpoint after the last one.
func (e *endpoint) remove(a *association) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byTag[a.ourTag] == a {
		delete(e.byTag, a.ourTag)
	}
	if e.byPeer[a.peer] == a {
		delete(e.byPeer, a.peer)
	}
	e.closeIfIdle()
}

func (e *endpoint) closeIfIdle() {
	if e.closing && len(e.byTag) == 0 {
		_ = e.pc.Close()
	}
}

// retire ends the endpoint as soon as it has no association.
func (e *endpoint) retire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	e.closeIfIdle()
}

// associations returns the established associations.
func (e *endpoint) associations() []*association {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.byTag))
}

func (e *endpoint) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing && len(e.byTag) == 0
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.byTag)
}

// close ends the endpoint and its associations, and waits until they have ended.
func (e *endpoint) close() {
	e.retire()
	for _, a := range e.associations() {
		late := time.AfterFunc(shutdownTime, func() { a.fail(net.ErrClosed) })
		defer late.Stop()
		go a.shutdown()
	}
	e.running.Wait()
}
