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
	// acknowledged. sendMessages is far below the 32767 messages that the DDP-SSN can
	// distinguish (RFC 5043 section 10).
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
	incoming int64 // messages of the peer whose end has arrived for pion
	whole    int64 // those of them that arrived in one piece, and so can be received
	octets   int   // sent and not acknowledged
	messages int   // sent and not acknowledged
	queued   int   // those of messages that pion has not sent yet
	state    streamState
	changed  chan struct{} // closed, and set to nil, when octets and messages have become fewer
}

// A streamState says who may use a pair of streams.
type streamState uint8

const (
	taken streamState = iota // a session uses it
	given                    // another session may use it, once all is acknowledged
	dead                     // no session can use it any more
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

// came records a DATA chunk of the peer. The caller holds a.mu.
func (s *stream) came(c chunk) {
	if c.ends() {
		s.incoming++
	}
	if c.whole() {
		s.whole++
	}
}

// more reports whether there may be a message that Receive has not returned. If Receive has returned none,
// there must be a whole one: of another message only a piece may ever arrive. The caller holds a.mu.
func (s *stream) more() bool {
	taken := s.taken.Load()
	return s.incoming > taken && (taken > 0 || s.whole > 0)
}

// mayHave reports whether n octets may be sent now. The caller holds a.mu.
func (s *stream) mayHave(n int) bool {
	return s.messages == 0 || s.messages < sendMessages && s.octets+n <= sendOctets
}

// acked records that the peer has acknowledged a message. The caller holds a.mu.
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

// await waits until cond, which is called with a.mu held, returns true. It reports false if the
// association has failed first, or done is closed.
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

// Receive does not wait once the association has failed: fail records the failure before it wakes the streams, so a later call sees it
// here. Messages that have arrived are still returned.
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
	case errors.Is(err, io.ErrShortBuffer): // pion keeps the message, and later ones are never read
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

// sackSize is the space that is left for an acknowledgement beside a message (RFC 5043 section 9).
const sackSize = 16

func (s *stream) MaxMessage() int {
	return (s.a.packetSize-headerSize-dataHeaderSize)&^3 - sackSize
}

func (s *stream) Release(clean bool) { s.a.ended(s, clean) }

// discard reads what has arrived on a dead stream, without waiting.
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
