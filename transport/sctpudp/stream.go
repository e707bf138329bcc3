package sctpudp

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	pion "github.com/pion/sctp"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

const (
	// sendOctets and sendMessages bound what one session has sent and the peer has not
	// acknowledged: the second keeps well away from the 32767 that the DDP-SSN can tell
	// apart (RFC 5043 section 10).
	sendOctets   = 1 << 20
	sendMessages = 8192
)

// A stream is a pair of streams that one session uses.
type stream struct {
	a    *association
	id   uint16
	pion *pion.Stream

	wakeMu sync.Mutex
	woken  bool
	parked bool

	taken atomic.Int64 // messages that Receive has returned

	// Guarded by a.mu:
	incoming int64 // messages of the peer whose end has come for pion
	whole    int64 // those of them that came in one piece, and so can be received
	octets   int   // sent and not acknowledged
	messages int
	queued   int // of messages: those that pion has not sent yet
	state    streamState
	changed  chan struct{} // closed, and gone, when there is less of both
}

// A streamState tells who may use a pair of streams.
type streamState uint8

const (
	taken streamState = iota // a session does
	given                    // another session may, once all is acknowledged
	dead                     // no session can any more
)

var _ sctp.Stream = (*stream)(nil)

// attach opens the stream in pion.
func (s *stream) attach() error {
	p, err := s.a.pion.OpenStream(s.id, sctp.PPIDSegment)
	if err != nil {
		return s.a.why()
	}
	p.SetReliabilityParams(true, pion.ReliabilityTypeReliable, 0)
	s.pion = p
	return nil
}

func (s *stream) Send(ppid uint32, msg []byte, urgent bool) error {
	a := s.a
	a.mu.Lock()
	if err := a.failure; err != nil {
		a.mu.Unlock()
		return err
	}
	if !urgent && !s.mayHave(len(msg)) {
		a.mu.Unlock()
		return transport.ErrAgain
	}
	s.octets += len(msg)
	s.messages++
	s.queued++
	a.waiting++
	a.mu.Unlock()
	if _, err := s.pion.WriteSCTP(msg, pion.PayloadProtocolIdentifier(ppid)); err != nil {
		return a.why()
	}
	return nil
}

// came notes a DATA chunk of the peer. The caller holds a.mu.
func (s *stream) came(c chunk) {
	if c.ends() {
		s.incoming++
	}
	if c.whole() {
		s.whole++
	}
}

// more tells whether there may be a message that Receive has not returned. If it has returned none,
// then there must be one: a piece may be all that ever comes of a message. The caller holds a.mu.
func (s *stream) more() bool {
	taken := s.taken.Load()
	return s.incoming > taken && (taken > 0 || s.whole > 0)
}

// mayHave tells whether n octets may be sent now. The caller holds a.mu.
func (s *stream) mayHave(n int) bool {
	return s.messages == 0 || s.messages < sendMessages && s.octets+n <= sendOctets
}

// acked notes that the peer has acknowledged a message. The caller holds a.mu.
func (s *stream) acked(octets int) {
	s.octets -= octets
	s.messages--
	if s.messages == 0 || s.octets < sendOctets/2 && s.messages < sendMessages/2 {
		s.signal()
	}
}

// signal wakes the calls in await, which check their conditions again. The caller holds a.mu.
func (s *stream) signal() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// await waits for cond, asked with a.mu held. It reports false if the association has
// failed first, or done is closed.
func (s *stream) await(done <-chan struct{}, cond func() bool) bool {
	a := s.a
	for {
		a.mu.Lock()
		failed, holds := a.failure != nil, cond()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		a.mu.Unlock()
		if failed || holds {
			return !failed
		}
		select {
		case <-changed:
		case <-a.done:
		case <-done:
			return false
		}
	}
}

func (s *stream) Room(done <-chan struct{}) {
	s.await(done, func() bool { return s.octets < sendOctets/2 && s.messages < sendMessages/2 })
}

func (s *stream) Acked(done <-chan struct{}) bool {
	return s.await(done, func() bool { return s.messages == 0 })
}

// Receive waits for no message once the association has failed, which fail tells before it wakes: what parks later sees it here. What
// has come is still returned.
func (s *stream) Receive(p []byte) (int, uint32, error) {
	s.wakeMu.Lock()
	failed := s.a.over()
	if s.woken {
		s.woken = false
		s.wakeMu.Unlock()
		return 0, 0, transport.ErrWoken
	}
	s.parked = true
	if failed {
		_ = s.pion.SetReadDeadline(time.Now()) // never fails
	}
	s.wakeMu.Unlock()

	n, ppid, err := s.pion.ReadSCTP(p)

	s.wakeMu.Lock()
	s.parked = false
	late := errors.Is(err, pion.ErrReadDeadlineExceeded)
	if s.woken || late {
		_ = s.pion.SetReadDeadline(time.Time{}) // never fails
	}
	if err != nil {
		s.woken = false
	}
	s.wakeMu.Unlock()
	switch {
	case err == nil:
		s.taken.Add(1)
		if s.a.room.free(n) {
			s.a.nudge()
		}
		return n, uint32(ppid), nil
	case late && !failed:
		return 0, 0, transport.ErrWoken
	case errors.Is(err, io.ErrShortBuffer): // pion keeps it, and what is behind it is never read
		s.a.fail(errLong)
	}
	return 0, 0, s.a.why()
}

func (s *stream) Wake() {
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	if s.woken {
		return
	}
	s.woken = true
	if s.parked {
		_ = s.pion.SetReadDeadline(time.Now()) // never fails
	}
}

// sackSize is what is left for an acknowledgement beside a message (RFC 5043 section 9).
const sackSize = 16

func (s *stream) MaxMessage() int {
	return (s.a.packetSize-headerSize-dataHeaderSize)&^3 - sackSize
}

func (s *stream) Release(clean bool) { s.a.ended(s, clean) }

// discard reads what has come on a dead stream, and does not wait.
func (s *stream) discard() {
	buf := packets.Get().(*[maxPacket]byte)
	defer packets.Put(buf)
	for {
		n, _, err := s.pion.ReadSCTP(buf[:])
		if errors.Is(err, io.ErrShortBuffer) {
			s.a.fail(errLong)
		}
		if err != nil {
			return
		}
		if s.a.room.free(n) {
			s.a.nudge()
		}
	}
}

func (s *stream) LocalAddr() net.Addr  { return s.a.local }
func (s *stream) RemoteAddr() net.Addr { return Addr{UDP: s.a.peer.udp, Port: s.a.peer.port} }
