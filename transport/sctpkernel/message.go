package sctpkernel

import "sync"

// A message is a message of the peer, or a notification of the kernel.
type message struct {
	stream       uint16
	ppid         uint32
	notification bool
	long         bool // it did not fit: a part is missing
	n            int
	buf          []byte // as long as its class
}

// classes are the sizes of buffers. The largest holds what fits the largest Ethernet
// frame, which is the most that a session accepts.
var classes = [...]int{256, 2 << 10, 9 << 10}

// minNotification is how much of a buffer is always free for a notification.
const minNotification = 512

// overhead is the cost of a message besides its buffer.
const overhead = 64

var pools [len(classes)]sync.Pool

func newMessage(class int) *message {
	if m, ok := pools[class].Get().(*message); ok {
		*m = message{buf: m.buf}
		return m
	}
	return &message{buf: make([]byte, classes[class])}
}

// free returns the message, with its buffer, to its pool.
func (m *message) free() {
	for i, n := range classes {
		if n == len(m.buf) {
			pools[i].Put(m) // the caller no longer owns it
			return
		}
	}
}

func (m *message) bytes() []byte { return m.buf[:m.n] }

// cost returns what the message counts for in a hold.
func (m *message) cost() int { return len(m.buf) + overhead }

// fitted returns the message in the smallest buffer that holds it.
func (m *message) fitted() *message {
	for i, n := range classes {
		if m.n > n || n == len(m.buf) {
			continue
		}
		s := newMessage(i)
		s.stream, s.ppid, s.long, s.n = m.stream, m.ppid, m.long, m.n
		copy(s.buf, m.bytes())
		m.free()
		return s
	}
	return m
}
