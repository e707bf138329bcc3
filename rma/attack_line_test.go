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

// Where fields of segments are, and how long their headers are.
const (
	untaggedHeader = 18
	taggedHeader   = 14

	opcodeSend           = 3
	opcodeSendInvalidate = 4
)

// A segment is a ULPDU on its way, or the end of its direction if it has no octets.
type segment struct {
	dir int
	b   []byte
}

func (s *segment) tagged() bool { return s.b[0]&0x80 != 0 }

// isSend reports whether it is of queue 0.
func (s *segment) isSend() bool {
	return !s.tagged() && len(s.b) >= untaggedHeader && binary.BigEndian.Uint32(s.b[6:]) == 0
}

// message is the message of this package in a Send; nil: there is none.
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

// blob is what a Write has; nil: it is none.
func (s *segment) blob() []byte {
	if !s.tagged() || s.b[1]&0xf != 0 {
		return nil
	}
	return s.b[taggedHeader:]
}

// tag is the STag of a Write, or the one that a message invalidates.
func (s *segment) tag() uint32 { return binary.BigEndian.Uint32(s.b[2:]) }

// sink is that of a Write, or of a message that invalidates it.
func (s *segment) sink() sink { return sink{s.dir, s.tag()} }

// with is the segment with other octets behind its header.
func (s *segment) with(payload []byte) segment {
	n := untaggedHeader
	if s.tagged() {
		n = taggedHeader
	}
	return segment{s.dir, append(append([]byte(nil), s.b[:n]...), payload...)}
}

// An end is one of a connection, as pipes and TCP have them.
type end interface {
	net.Conn
	CloseWrite() error
}

// A line is a connection whose segments pass an attacker of type A2: it may change them, and frames and
// numbers them anew. With steps they wait until next delivers them.
type line struct {
	passes func(segment) // what becomes of a segment; mu is held

	mu     sync.Mutex
	steps  bool
	ends   [2]end    // by the direction that is written to them
	part   [2][]byte // of the frame that has begun
	starts [2]bool   // the start-up frame has passed
	queue  [2][]segment
	sends  [2]uint32 // how many there were
}

// A tap is the end of a line that a QP has.
type tap struct {
	end
	l   *line
	dir int
}

// newLine makes a line of a connection. It returns what the QPs of the client and the server get.
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

// CloseWrite comes behind what waits.
func (t *tap) CloseWrite() error {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.l.steps {
		t.l.queue[t.dir] = append(t.l.queue[t.dir], segment{dir: t.dir})
		return nil
	}
	return t.end.CloseWrite()
}

// Close delivers what waits.
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

// frame takes a frame out of what was written, if it is whole.
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
		_, _ = l.ends[dir].Write(b[:n]) // the peer may be gone
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

// next delivers what has waited longest in one of the directions, of which pick chooses one if both
// have something. It reports false if there is nothing.
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
