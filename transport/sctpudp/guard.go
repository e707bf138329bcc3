package sctpudp

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"time"
)

var (
	errStream  = errors.New("sctp: the peer uses a stream that it does not have")
	errOrdered = errors.New("sctp: the peer sent an ordered message (RFC 5043 section 10)")
	errPieces  = errors.New("sctp: the peer cuts messages into pieces that are smaller than any packet")
	errLong    = errors.New("sctp: the peer sent a message that is longer than any packet (RFC 5043 section 9)")

	violations = []error{errStream, errOrdered, errPieces, errLong}
)

// An emptyError ends an association whose peer has sent a DATA chunk without user data (RFC 9260 section 6.2).
type emptyError struct{ tsn uint32 }

func (e *emptyError) Error() string { return "sctp: the peer sent a DATA chunk with no user data" }

// causes returns the error causes of the ABORT, for the errors that have one (RFC 9260 sections 3.3.10 and 9.1).
func causes(why error) []byte {
	const noUserData, ofTheUser, violation = 9, 12, 13
	var empty *emptyError
	switch {
	case errors.As(why, &empty):
		return appendParam(nil, noUserData, binary.BigEndian.AppendUint32(nil, empty.tsn))
	case errors.Is(why, net.ErrClosed):
		return appendParam(nil, ofTheUser, nil)
	case slices.Contains(violations, why):
		return appendParam(nil, violation, nil)
	}
	return nil
}

const (
	// minPiece is the least length of a fragment of a message, except the last: a message
	// that fits in a packet must not be fragmented (RFC 5043 section 9).
	minPiece = 256
	// maxGaps is how many gaps at most pion sees in a SACK.
	maxGaps = 256
)

// accept copies the chunks of a packet that are for pion to dst, and handles the others. It
// returns the length, or 0 if none is for pion.
func (a *association) accept(dst, p []byte) int {
	a.hear()
	out, refused := dst[:headerSize], false
	var said kindSet // the answers: one of each kind, because a packet can contain thousands of chunks
	for c, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		c, rest = split(rest)
		switch c.kind() {
		case chunkData:
			if err := a.check(c); err != nil {
				a.fail(err)
				return 0
			}
			if !a.sight(c) {
				refused = true
				continue
			}
		case chunkAbort:
			if a.tagged(p, c) && c.hasCauses() {
				a.fail(errReset)
				return 0
			}
			rest = nil // the packet is discarded
			continue
		case chunkSack, chunkShutdown, chunkShutdownAck, chunkShutdownComplete:
			if c = a.reduced(p, c); c == nil {
				continue
			}
		default:
			if a.answer(c, &said) {
				rest = nil
			}
			continue
		}
		out = append(out, c...)
		out = append(out, make([]byte, pad(len(c))-len(c))...)
	}
	if refused { // acknowledge at least what has been taken
		out = a.appendNudge(out)
	}
	if len(out) == headerSize {
		return 0
	}
	address(out, ports{pionPort, pionPort}, a.ourTag)
	return len(out)
}

// tagged reports whether p has the tag that an ABORT or a SHUTDOWN COMPLETE in it must have: ours, or that of the peer if
// the chunk says so (RFC 9260 section 8.5.1).
func (a *association) tagged(p []byte, c chunk) bool {
	if c[1]&flagReflected != 0 {
		return tagOf(p) == a.peerTag
	}
	return tagOf(p) == a.ourTag
}

// reduced returns a control chunk in the form for pion, or nil if it is ignored.
func (a *association) reduced(p []byte, c chunk) chunk {
	switch c.kind() {
	case chunkSack:
		if c = plain(c); c == nil {
			return nil
		}
		a.acked(c)
	case chunkShutdown:
		if len(c) < chunkHeaderSize+4 {
			return nil
		}
		a.acked(c)
	case chunkShutdownAck, chunkShutdownComplete:
		if c.kind() == chunkShutdownComplete && !a.tagged(p, c) {
			return nil
		}
		c = c[:chunkHeaderSize] // they have no body, and pion would keep one with the DATA of the packet
		binary.BigEndian.PutUint16(c[2:], chunkHeaderSize)
	}
	return c
}

// answer answers a HEARTBEAT; a COOKIE ECHO, which is the first one, or our COOKIE ACK was lost; and an unknown chunk.
// said contains the answers to the same packet. It reports true if everything after the chunk is ignored.
func (a *association) answer(c chunk, said *kindSet) (last bool) {
	answer, value := byte(chunkHeartbeatAck), []byte(c[chunkHeaderSize:])
	switch kind := c.kind(); {
	case kind == chunkHeartbeat:
	case kind == chunkCookieEcho:
		answer, value = chunkCookieAck, nil
	case kind <= chunkShutdownComplete:
		return false
	case kind&chunkReport != 0:
		answer, value = chunkError, a.unrecognized(c)
		last = kind&chunkSkip == 0
	default:
		return kind&chunkSkip == 0
	}
	if !said.has(answer) {
		*said |= 1 << answer
		a.say(answer, value)
	}
	return last
}

// unrecognized returns the cause of an ERROR that reports a chunk, truncated if there is no room for all of it (RFC
// 9260 section 3.3.10.6).
func (a *association) unrecognized(c chunk) []byte {
	const cause = 6
	c = c[:min(len(c), a.packetSize-headerSize-chunkHeaderSize-paramSize)]
	return appendParam(nil, cause, c)
}

// check returns an error for an invalid DATA chunk.
func (a *association) check(c chunk) error {
	switch {
	case c.octets() == 0:
		return &emptyError{c.tsn()}
	case int(c.stream()) >= a.pairs:
		return errStream
	case c[1]&flagUnordered == 0:
		return errOrdered
	case !c.ends() && c.octets() < minPiece:
		return errPieces
	}
	return nil
}

// plain reduces a SACK to what pion needs: ascending gaps, and not too many of them, since
// pion walks its queue for each. It returns nil for a chunk that is not a SACK.
func plain(c chunk) chunk {
	const fixed = chunkHeaderSize + 12
	if len(c) < fixed {
		return nil
	}
	gaps, last := 0, 0
	for b := c[fixed:]; gaps < maxGaps && gaps < int(binary.BigEndian.Uint16(c[12:])) && len(b) >= 4; b = b[4:] {
		first, end := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
		if first <= last || end < first {
			break
		}
		gaps, last = gaps+1, end
	}
	c = c[:fixed+4*gaps]
	binary.BigEndian.PutUint16(c[2:], uint16(len(c)))
	binary.BigEndian.PutUint32(c[12:], uint32(gaps)<<16)
	return c
}

// acked processes the cumulative TSN of a SACK or SHUTDOWN, and sends the probe again if there is room now.
func (a *association) acked(c chunk) {
	if p := a.noteAcked(c); p != nil {
		a.e.send(p, a.way)
	}
}

// noteAcked records what the peer has received, and returns the packet to be sent again, or nil if there is none.
func (a *association) noteAcked(c chunk) (again []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ok := a.flight.acked(c.tsn(), func(c sentChunk) {
		if c.s != nil {
			c.s.acked(c.octets)
			a.reuse(c.s)
		}
	})
	if ok && c.kind() == chunkSack {
		if len(a.flight.chunks) > 0 && a.window < uint32(a.packetSize) { // until now it had no room for what waits
			a.flight.since = time.Now()
		}
		a.window = c.window()
		again = a.reopened()
	}
	return again
}

// misses reports whether a chunk of the peer is missing before one that has arrived.
func (a *association) misses() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.arrived.early > 0
}

// nudge makes pion send a SACK with its window. pion does not do so by itself when its buffer
// has been read. If packets are waiting there is no need.
func (a *association) nudge() { a.push(nil, 0) }

// nudged builds the packet of a nudge for pion.
func (a *association) nudged(dst []byte) int {
	out := a.appendNudge(dst[:headerSize])
	address(out, ports{pionPort, pionPort}, a.ourTag)
	return len(out)
}

// appendNudge appends a DATA chunk that pion has received before, to be acknowledged at once.
func (a *association) appendNudge(out []byte) []byte {
	a.mu.Lock()
	tsn := a.received
	a.mu.Unlock()
	var value [dataHeaderSize - chunkHeaderSize + 1]byte
	binary.BigEndian.PutUint32(value[:], tsn)
	return appendChunk(out, chunkData, flagImmediate|flagsMessage, value[:])
}
