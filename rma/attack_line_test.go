package rma

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// The directions of a line, by the side that sends.
const (
	fromClient = iota
	fromServer
)

// The offsets of fields in segments, and the lengths of the headers.
const (
	untaggedHeader = 18
	taggedHeader   = 14

	opcodeSend           = 3
	opcodeSendInvalidate = 4
)

// A segment is a ULPDU in transit, or the end of its direction if it is empty.
type segment struct {
	dir int
	b   []byte
}

func (s *segment) tagged() bool { return s.b[0]&0x80 != 0 }

// isSend reports whether the segment belongs to queue 0.
func (s *segment) isSend() bool {
	return !s.tagged() && len(s.b) >= untaggedHeader && binary.BigEndian.Uint32(s.b[6:]) == 0
}

// message returns the message of this package in a Send, or nil.
func (s *segment) message() []byte {
	if !s.isSend() || len(s.b) < untaggedHeader+24 {
		return nil
	}
	m := s.b[untaggedHeader:]
	if t := wire.Type(m[1]); m[0] != 1 || t < wire.TypeHello || t > wire.TypeRekeyDone || t.Size() != len(m) {
		return nil
	}
	return m
}

// blob returns the payload of a Write, or nil.
func (s *segment) blob() []byte {
	if !s.tagged() || s.b[1]&0xf != 0 {
		return nil
	}
	return s.b[taggedHeader:]
}

// tag returns the STag of a Write, or the STag that a message invalidates.
func (s *segment) tag() uint32 { return binary.BigEndian.Uint32(s.b[2:]) }

// sink returns the sink of a Write, or the sink that a message invalidates.
func (s *segment) sink() sink { return sink{s.dir, s.tag()} }

// with returns the segment with other octets after its header.
func (s *segment) with(payload []byte) segment {
	n := untaggedHeader
	if s.tagged() {
		n = taggedHeader
	}
	return segment{s.dir, append(append([]byte(nil), s.b[:n]...), payload...)}
}

// An end is an end of a connection over a pipe or TCP.
type end interface {
	net.Conn
	CloseWrite() error
}

// A line is a connection whose segments pass an attacker of type A2: it may change them, and it frames and
// numbers them anew. With steps they wait until next delivers them.
type line struct {
	passes func(segment) // handles each segment; mu is held

	mu     sync.Mutex
	steps  bool
	ends   [2]end    // by the direction that is written to the end
	part   [2][]byte // of an incomplete frame
	starts [2]bool   // the start-up frame has passed
	queue  [2][]segment
	sends  [2]uint32 // how many have passed
}

// A tap is the end of a line that a QP gets.
type tap struct {
	end
	l   *line
	dir int
}

// newLine makes a line for a connection. It returns the ends for the QPs of the client and the server.
func newLine(client, server net.Conn) (l *line, c, s net.Conn) {
	l = &line{ends: [2]end{client.(end), server.(end)}}
	return l, &tap{l.ends[0], l, fromClient}, &tap{l.ends[1], l, fromServer}
}

func (t *tap) Write(b []byte) (int, error) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part[t.dir] = append(l.part[t.dir], b...)
	for l.frame(t.dir) {
	}
	return len(b), nil
}

// CloseWrite follows the segments that wait.
func (t *tap) CloseWrite() error {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.l.steps {
		t.l.queue[t.dir] = append(t.l.queue[t.dir], segment{dir: t.dir})
		return nil
	}
	return t.end.CloseWrite()
}

// Close delivers the segments that wait.
func (t *tap) Close() error {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	for _, s := range t.l.queue[t.dir] {
		t.l.send(s)
	}
	t.l.queue[t.dir] = nil
	return t.end.Close()
}

// Abort resets a pipe; TCP has no such method.
func (t *tap) Abort() error {
	if a, ok := t.end.(interface{ Abort() error }); ok {
		return a.Abort()
	}
	return t.end.Close()
}

// frame removes a complete frame, if there is one, from the octets that were written.
func (l *line) frame(dir int) bool {
	const startSize = 20
	b := l.part[dir]
	switch {
	case !l.starts[dir] && len(b) >= startSize:
		n := startSize + int(binary.BigEndian.Uint16(b[startSize-2:]))
		if len(b) < n {
			return false
		}
		l.starts[dir] = true
		_, _ = l.ends[dir].Write(b[:n]) // the peer may have gone
		l.part[dir] = b[n:]
		return true
	case l.starts[dir] && len(b) >= 2:
		ulpdu := int(binary.BigEndian.Uint16(b))
		n := 2 + ulpdu + -(2+ulpdu)&3 + 4
		if len(b) < n {
			return false
		}
		s := segment{dir, append([]byte(nil), b[2:2+ulpdu]...)}
		l.part[dir] = b[n:]
		if l.steps {
			l.queue[dir] = append(l.queue[dir], s)
		} else {
			l.passes(s)
		}
		return true
	}
	return false
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// send frames a segment and sends it. mu is held.
func (l *line) send(s segment) {
	if len(s.b) == 0 {
		_ = l.ends[s.dir].CloseWrite()
		return
	}
	if s.isSend() {
		l.sends[s.dir]++
		binary.BigEndian.PutUint32(s.b[10:], l.sends[s.dir])
	}
	f := binary.BigEndian.AppendUint16(make([]byte, 0, len(s.b)+9), uint16(len(s.b)))
	f = append(f, s.b...)
	f = append(f, make([]byte, -len(f)&3)...)
	_, _ = l.ends[s.dir].Write(binary.LittleEndian.AppendUint32(f, crc32.Checksum(f, castagnoli)))
}

// next delivers the segment that has waited longest in one of the directions; pick chooses the direction if
// both have one. It reports false if there is none.
func (l *line) next(pick func() int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	dir := fromClient
	switch {
	case len(l.queue[0])+len(l.queue[1]) == 0:
		return false
	case len(l.queue[0]) == 0:
		dir = fromServer
	case len(l.queue[1]) > 0:
		dir = pick()
	}
	s := l.queue[dir][0]
	l.queue[dir] = l.queue[dir][1:]
	if len(s.b) == 0 {
		l.send(s)
	} else {
		l.passes(s)
	}
	return true
}
