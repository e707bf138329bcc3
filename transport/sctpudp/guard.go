package sctpudp

import (
	"encoding/binary"
	"errors"
	"time"
)

var (
	errStream  = errors.New("sctp: the peer uses a stream that it does not have")
	errOrdered = errors.New("sctp: the peer sent an ordered message (RFC 5043 section 10)")
	errPieces  = errors.New("sctp: the peer cuts messages into pieces that are smaller than any packet")
	errLong    = errors.New("sctp: the peer sent a message that is longer than any packet (RFC 5043 section 9)")
)

const (
	// minPiece is the least length of a fragment of a message, but for the last one: no
	// message that fits a packet is to be fragmented (RFC 5043 section 9).
	minPiece = 256
	// maxGaps is how many gaps pion is told of at a time.
	maxGaps = 256
)

// accept copies the chunks of a packet that are for pion to dst, and handles the others. It
// returns the length, 0 if none is for pion.
func (a *association) accept(dst, p []byte) int {
	a.hear()
	out, refused := dst[:headerSize], false
	said := 0 // bits of the kinds of chunks that were answered: one of each is, for a packet has room for thousands
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
		case chunkSack:
			if c = plain(c); c == nil {
				continue
			}
			a.acked(c)
		case chunkShutdown:
			if len(c) < chunkHeaderSize+4 {
				continue
			}
			a.acked(c)
		case chunkAbort:
			a.fail(errReset)
			return 0
		case chunkHeartbeat, chunkCookieEcho:
			if said&(1<<c.kind()) == 0 {
				a.answer(c)
			}
			said |= 1 << c.kind()
			continue
		case chunkShutdownAck, chunkShutdownComplete:
			c = c[:chunkHeaderSize] // they have no body, and pion would keep one with the DATA of the packet
			binary.BigEndian.PutUint16(c[2:], chunkHeaderSize)
		default:
			continue
		}
		out = append(out, c...)
		out = append(out, make([]byte, pad(len(c))-len(c))...)
	}
	if refused { // the peer hears at least what has been taken
		out = a.appendNudge(out)
	}
	if len(out) == headerSize {
		return 0
	}
	address(out, ports{pionPort, pionPort}, a.ourTag)
	return len(out)
}

// answer answers a HEARTBEAT, or a COOKIE ECHO: the first, or our COOKIE ACK was lost.
func (a *association) answer(c chunk) {
	if c.kind() == chunkHeartbeat {
		a.say(chunkHeartbeatAck, 0, c[chunkHeaderSize:])
	} else {
		a.say(chunkCookieAck, 0, nil)
	}
}

// check returns an error for a DATA chunk that is wrong.
func (a *association) check(c chunk) error {
	switch {
	case int(c.stream()) >= a.pairs:
		return errStream
	case c[1]&flagUnordered == 0:
		return errOrdered
	case !c.ends() && c.octets() < minPiece:
		return errPieces
	}
	return nil
}

// plain reduces a SACK to what pion needs: gaps that ascend, and not too many of them, since
// pion walks its queue for each. It returns nil for a chunk that is no SACK.
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

// acked takes the cumulative TSN of a SACK or SHUTDOWN.
func (a *association) acked(c chunk) {
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
	}
}

// nudge makes pion send a SACK with its window. pion does not do so by itself when its buffer
// has been read. Where packets are waiting there is no need.
func (a *association) nudge() { a.push(nil, 0) }

// nudged makes the packet of a nudge for pion.
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
