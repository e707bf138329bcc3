package sctp

import "encoding/binary"

// A session is what one end knows about the peer's half of a session: the sequence of its
// messages, and whether it is legal (RFC 5043 section 6). It does no I/O.
type session struct {
	begun bool // a message has arrived, legal or not
	in    arrivals
	end   uint64 // the place of its Terminate, 0 until that arrives
	early []message
	held  int // octets of early
}

// A message is a segment that arrived before it could be delivered.
type message struct {
	seq uint64
	ulp []byte
}

// earlyLimit bounds the octets of segments that overtake an Accept.
const earlyLimit = 1 << 20

// receive processes a message of the peer. If it is a segment, seq is its place among the
// segments of the session, which begin after one control message. A control message is
// returned while the session is not open; ended reports that the peer has terminated an
// open session.
func (s *session) receive(ppid uint32, msg []byte) (seq uint64, segment []byte, c *control, err error) {
	s.begun = true
	if len(msg) < ssnSize || ppid != PPIDSegment && ppid != PPIDControl {
		return 0, nil, nil, violation("a message of %d octets with the payload protocol identifier %d", len(msg), ppid)
	}
	at, err := s.in.take(binary.BigEndian.Uint16(msg))
	if err != nil {
		return 0, nil, nil, err
	}
	if s.end != 0 && at > s.end {
		return 0, nil, nil, violation("a message after its Terminate")
	}
	if ppid == PPIDControl {
		c, err := s.control(at, msg)
		return 0, nil, c, err
	}
	if at == 0 {
		return 0, nil, nil, violation("a segment where a control message begins the session")
	}
	return at - 1, msg[ssnSize:], nil, nil
}

// control processes a control message. Only the first message of a session, and its
// Terminate, can be one.
func (s *session) control(at uint64, msg []byte) (*control, error) {
	c, err := parseControl(msg)
	if err != nil {
		return nil, err
	}
	if at == 0 {
		return &c, nil
	}
	if c.function != Terminate || s.end != 0 {
		return nil, violation("%v within a session", c.function)
	}
	s.end = at
	if s.in.top > at+1 {
		return nil, violation("a message after its Terminate")
	}
	return nil, nil
}

// ended reports whether the peer's Terminate and all messages before it have arrived, and nothing after it.
func (s *session) ended() bool { return s.end != 0 && s.in.next > s.end && s.in.top == s.end+1 }

// keep stores a segment that arrived before the answer that opens the session.
func (s *session) keep(seq uint64, segment []byte) error {
	if s.held += len(segment); s.held > earlyLimit {
		return violation("more than %d octets of segments before it accepted the session", earlyLimit)
	}
	s.early = append(s.early, message{seq: seq, ulp: append([]byte(nil), segment...)})
	return nil
}
