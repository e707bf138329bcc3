package rdmap

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Gate keeps out a peer that has to prove itself by its first message. While it is shut
// nothing but that message is taken, nothing is placed into memory of the application, and
// nothing is sent but a Terminate.
//
// The message is a Send without any flags, MSN 1 of QN 0, in one segment. It is placed into a
// buffer of the stream's own, and no [ReceiveQueue] hears of it: receives are for the messages
// from MSN 2 on. Anything in its place, and one that Verify does not accept, ends the stream
// with 0/2/07 and an error that matches [ErrGate], but for a Terminate of the peer, which is
// taken. Where segments come out of order, those behind the message wait for the verdict, at
// most 64 KiB of them.
type Gate struct {
	// Len is the length of the message in octets, at most [MaxFirst].
	Len int
	// Verify tells whether msg, which is lent, is the right one. Its error is wrapped by that of
	// the stream.
	Verify func(msg []byte) error
	// Opened is called once, when Verify has accepted the message and before anything behind it is
	// taken. Fill may then have something to send.
	Opened func()
}

// MaxFirst is how long the first message of a peer that has to prove itself may be: it fits one
// segment of every LLP.
const MaxFirst = 128 - ddp.UntaggedLen

// ErrGate is matched by the error of a stream that ends because the peer has not proved itself
// by its first message.
var ErrGate = errors.New("rdmap: the first message of the peer is not the one that was due")

// A gate is a Gate that is shut: the queue of the message, QN 0 for as long.
type gate struct {
	ddp.NoBatch
	Gate
	s      *Stream
	buffer [1]stag.Span
}

// shutGate begins with the Gate shut, if there is one.
func (s *Stream) shutGate(c *Gate) {
	if c == nil {
		return
	}
	g := &gate{Gate: *c, s: s}
	g.buffer[0] = stag.Span{Mem: make([]byte, c.Len), Len: c.Len}
	s.ddp.Guard(gatekeeper{upper{s}, g}, QNSend, g)
	s.gated = true
}

// Posted is the one buffer.
func (g *gate) Posted() int { return 1 }

// Buffer is that of the message.
func (g *gate) Buffer(int, *ddp.UntaggedHeader) []stag.Span { return g.buffer[:] }

// Missing is never asked.
func (g *gate) Missing() error { return nil }

// Deliver asks for the verdict, and opens the gate.
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

// openGate lets the requests start that were posted so far.
func (s *Stream) openGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gated = false
}

// A gatekeeper is what DDP asks while a gate is shut.
type gatekeeper struct {
	upper
	gate *gate
}

// Tagged refuses every tagged segment, before its STag is looked up and also if it is empty.
func (k gatekeeper) Tagged(h ddp.TaggedHeader, n int) (stag.Access, error) {
	return 0, k.gate.refuse(opcodeOf(h.RsvdULP), n)
}

// Untagged refuses all but the message, and a Terminate.
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

// refuse is what ends the stream that has brought a segment with n octets of payload.
func (g *gate) refuse(op Opcode, n int) error {
	return gateFault(fmt.Errorf("%w: %v of %d octets, a Send of %d is due", ErrGate, op, n, g.Len))
}

func gateFault(err error) error {
	return &transport.Fault{Code: transport.RDMAPStreamCatastrophic, Err: err}
}
