package rdmap

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Gate is for a peer that must prove its identity by its first message. While the Gate is shut,
// only that message is accepted, nothing is placed into memory of the application, and
// only a Terminate is sent.
//
// The message is a Send without any flags, MSN 1 of QN 0, in one segment. It is placed into a
// buffer of the stream, and the [ReceiveQueue] does not see it: receives are for the messages
// from MSN 2 on. A Terminate of the peer is accepted, too. Anything else, and a message that Verify
// does not accept, ends the stream with 0/2/07 and an error that matches [ErrGate]. If segments
// arrive out of order, those after the message wait until it has been verified, at most 64 KiB of
// them.
type Gate struct {
	// Len is the length of the message in octets, at most [MaxFirst].
	Len int
	// Verify checks msg, and must not retain it. The error of the stream wraps the error of
	// Verify.
	Verify func(msg []byte) error
	// Opened is called once, when Verify has accepted the message, and before anything after it is
	// processed. Fill may then have something to send.
	Opened func()
}

// MaxFirst is the largest length of the first message of a peer that must prove its identity: it
// fits in one segment of every LLP.
const MaxFirst = 128 - ddp.UntaggedLen

// ErrGate is matched by the error of a stream that ends because the peer has not proved its
// identity by its first message.
var ErrGate = errors.New("rdmap: the first message of the peer is not the one that was due")

// A gate is a Gate that is shut. It is the queue of the message, and serves as QN 0 until the Gate opens.
type gate struct {
	ddp.NoBatch
	Gate
	s      *Stream
	buffer [1]stag.Span
}

// shutGate shuts the Gate of a new stream, if there is one.
func (s *Stream) shutGate(c *Gate) {
	if c == nil {
		return
	}
	g := &gate{Gate: *c, s: s}
	g.buffer[0] = stag.Span{Mem: make([]byte, c.Len), Len: c.Len}
	s.ddp.Guard(gatekeeper{upper{s}, g}, QNSend, g)
	s.gated = true
}

// Posted returns 1, for the only buffer.
func (g *gate) Posted() int { return 1 }

// Buffer returns the buffer of the message.
func (g *gate) Buffer(int, *ddp.UntaggedHeader) []stag.Span { return g.buffer[:] }

// Missing is never called.
func (g *gate) Missing() error { return nil }

// Deliver verifies the message, and opens the gate.
func (g *gate) Deliver(h ddp.UntaggedHeader, n uint32) error {
	if err := g.Verify(g.buffer[0].Mem); err != nil {
		return gateFault(fmt.Errorf("%w: %w", ErrGate, err))
	}
	g.s.received(OpSend, 1, uint64(n))
	g.s.ddp.Unguard()
	g.s.openGate()
	g.Opened()
	return nil
}

// openGate allows the requests that were posted so far to start.
func (s *Stream) openGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gated = false
}

// A gatekeeper is the [ddp.Upper] while a gate is shut.
type gatekeeper struct {
	upper
	gate *gate
}

// Tagged refuses every tagged segment, even an empty one, before its STag is looked up.
func (k gatekeeper) Tagged(h ddp.TaggedHeader, n int) (stag.Access, error) {
	return 0, k.gate.refuse(opcodeOf(h.RsvdULP), n)
}

// Untagged refuses everything except the message and a Terminate.
func (k gatekeeper) Untagged(h ddp.UntaggedHeader, n int) error {
	op := opcodeOf(h.RsvdULP)
	switch {
	case op == OpTerminate && h.QN == QNTerminate:
		return k.upper.Untagged(h, n)
	case checkVersion(h.RsvdULP) != nil, op != OpSend, h.QN != QNSend, h.MSN != 1, h.MO != 0, !h.Last, n != k.gate.Len:
		return k.gate.refuse(op, n)
	}
	return nil
}

// refuse returns the error that ends the stream because of a segment with n octets of payload.
func (g *gate) refuse(op Opcode, n int) error {
	return gateFault(fmt.Errorf("%w: %v of %d octets, a Send of %d is due", ErrGate, op, n, g.Len))
}

func gateFault(err error) error {
	return &transport.Fault{Code: transport.RDMAPStreamCatastrophic, Err: err}
}
