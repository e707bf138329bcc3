package sctpkernel

import (
	"sync"

	"github.com/goiwarp/iwarp/transport"
)

// An inbox holds the messages of a session that have arrived and were not taken yet.
type inbox struct {
	mu    sync.Mutex
	some  sync.Cond
	queue []*message
	head  int // messages of queue before head were taken
	woken bool
	end   error // why no more messages will arrive
}

func (b *inbox) init() { b.some.L = &b.mu }

func (b *inbox) put(m *message) {
	b.mu.Lock()
	if b.head > 0 && len(b.queue) == cap(b.queue) {
		n := copy(b.queue, b.queue[b.head:])
		clear(b.queue[n:])
		b.queue, b.head = b.queue[:n], 0
	}
	b.queue = append(b.queue, m)
	b.mu.Unlock()
	b.some.Signal()
}

// take waits for a message. After wake it returns transport.ErrWoken once.
func (b *inbox) take() (*message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.woken:
			b.woken = false
			return nil, transport.ErrWoken
		case b.head < len(b.queue):
			m := b.queue[b.head]
			b.queue[b.head] = nil
			if b.head++; b.head == len(b.queue) {
				b.queue, b.head = b.queue[:0], 0
			}
			return m, nil
		case b.end != nil:
			return nil, b.end
		}
		b.some.Wait()
	}
}

// takeAll empties the inbox.
func (b *inbox) takeAll() []*message {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.queue[b.head:]
	b.queue, b.head = nil, 0
	return rest
}

func (b *inbox) wake() {
	b.mu.Lock()
	b.woken = true
	b.mu.Unlock()
	b.some.Broadcast()
}

// close makes take fail once the inbox is empty.
func (b *inbox) close(why error) {
	b.mu.Lock()
	b.end = why
	b.mu.Unlock()
	b.some.Broadcast()
}

// A hold bounds the memory of all messages of an association that wait to be taken.
type hold struct {
	mu     sync.Mutex
	less   sync.Cond
	octets int
	closed bool
}

// holdLimit is how many octets of an association may wait before no more is read from its
// socket: the peer then finds its window closed.
const holdLimit = 1 << 20

func (h *hold) init() { h.less.L = &h.mu }

// take waits for room. The last message may exceed the limit, so that there is room for a
// single message of any size.
func (h *hold) take(n int) {
	h.mu.Lock()
	for h.octets > holdLimit && !h.closed {
		h.less.Wait()
	}
	h.octets += n
	h.mu.Unlock()
}

func (h *hold) give(n int) {
	h.mu.Lock()
	h.octets -= n
	h.mu.Unlock()
	h.less.Signal()
}

func (h *hold) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.less.Broadcast()
}
