package sctpkernel

import (
	"errors"
	"net"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A stream is a pair of streams that one session uses.
type stream struct {
	a    *association
	id   uint16
	in   inbox
	dead bool // no session can use the pair any more: what arrives is discarded
	sent mark // guarded by the outbox
}

var _ sctp.Stream = (*stream)(nil)

func (s *stream) Send(ppid uint32, msg []byte, urgent bool) error {
	err := s.a.out.send(s, ppid, msg, urgent)
	if err == nil || errors.Is(err, transport.ErrAgain) {
		return err
	}
	s.a.fail(err)
	return s.a.Err()
}

func (s *stream) Room(done <-chan struct{}) { s.a.out.await(done) }

func (s *stream) Acked(done <-chan struct{}) bool {
	return s.a.await(done, func() bool { return s.a.out.allAcked(s) })
}

func (s *stream) Receive(p []byte) (int, uint32, error) {
	m, err := s.in.take()
	if err != nil {
		return 0, 0, err
	}
	defer s.a.drop(m)
	if m.long || m.n > len(p) {
		return 0, 0, &sctp.ViolationError{What: "a message that is longer than any packet"}
	}
	return copy(p, m.bytes()), m.ppid, nil
}

func (s *stream) Wake() { s.in.wake() }

func (s *stream) MaxMessage() int { return s.a.largest }

func (s *stream) Release(clean bool) { s.a.release(s, clean) }

func (s *stream) LocalAddr() net.Addr  { return s.a.local }
func (s *stream) RemoteAddr() net.Addr { return s.a.remote }
