package sctpkernel

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// A kernel is the part of a socket that sends.
type kernel interface {
	send(stream uint16, ppid uint32, immediate bool, msg []byte) error
	writable() (waited bool, err error)
	queued() (octets int, err error)
}

// An outbox sends the messages of all sessions of an association.
type outbox struct {
	sock kernel
	fail func(error) // ends the association

	mu      sync.Mutex
	sent    uint64    // octets of all messages
	urgent  []pending // messages for which there was no room, and that cannot wait in the session
	blocked bool      // the kernel accepts no more, and a goroutine waits for room
	over    bool
	changed chan struct{} // closed, and set to nil, when there may be room again
	room    sync.WaitGroup
}

type pending struct {
	s    *stream
	ppid uint32
	msg  []byte
}

// A mark is the position of a stream's last message among all that were sent.
type mark struct {
	end    uint64 // octets up to the end of the message
	octets int    // octets of the message, 0 if there is none
}

// maxUrgent bounds the messages that cannot wait. A session has at most three, one at a
// time.
const maxUrgent = 4 * maxStreams

// send sends a message. If there is no room it keeps an urgent message, and otherwise returns
// transport.ErrAgain. The caller ends the association after any other error.
func (o *outbox) send(s *stream, ppid uint32, msg []byte, urgent bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return errReset
	}
	err := transport.ErrAgain
	if !o.blocked {
		err = o.put(s, ppid, msg, urgent)
	}
	if !errors.Is(err, transport.ErrAgain) {
		return err
	}
	if !o.blocked {
		o.blocked = true
		o.room.Add(1)
		go o.waitForRoom()
	}
	if !urgent {
		return transport.ErrAgain
	}
	if len(o.urgent) == maxUrgent {
		return errFlood
	}
	o.urgent = append(o.urgent, pending{s, ppid, append([]byte(nil), msg...)})
	return nil
}

// put passes a message to the kernel. The caller holds mu. The peer is asked to acknowledge an
// urgent message at once, since a call waits for the acknowledgement.
func (o *outbox) put(s *stream, ppid uint32, msg []byte, urgent bool) error {
	if err := o.sock.send(s.id, ppid, urgent, msg); err != nil {
		return err
	}
	o.sent += uint64(len(msg))
	s.sent = mark{o.sent, len(msg)}
	return nil
}

// waitForRoom waits until the kernel accepts messages again, and sends the urgent ones.
func (o *outbox) waitForRoom() {
	defer o.room.Done()
	for {
		waited, err := o.sock.writable()
		if err == nil && !waited {
			time.Sleep(time.Millisecond) // it lacks memory, not room
		}
		if err == nil {
			err = o.flush()
		}
		if errors.Is(err, transport.ErrAgain) {
			continue
		}
		if err != nil {
			o.fail(err)
		}
		return
	}
}

func (o *outbox) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.urgent) > 0 {
		p := o.urgent[0]
		if err := o.put(p.s, p.ppid, p.msg, true); err != nil {
			return err
		}
		o.urgent = o.urgent[1:]
	}
	o.urgent, o.blocked = nil, false
	o.signal()
	return nil
}

// signal wakes the calls in await, which check again. The caller holds mu.
func (o *outbox) signal() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// await waits until there may be room, or the association has ended, or done is closed.
func (o *outbox) await(done <-chan struct{}) {
	for {
		o.mu.Lock()
		if !o.blocked || o.over {
			o.mu.Unlock()
			return
		}
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-done:
			return
		}
	}
}

// markOf returns the mark of the last message of s.
func (o *outbox) markOf(s *stream) mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.sent
}

// acked reports whether a message, and all before it, are known to be acknowledged. The
// kernel does not report that for single messages. But it keeps messages in order, and counts
// more octets of memory for each than its length: if it counts less than the length of the
// message and all later ones, it no longer keeps the message.
func (o *outbox) acked(m mark) bool {
	if m.octets == 0 {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	kept, err := o.sock.queued()
	return err == nil && uint64(kept) < o.sent-m.end+uint64(m.octets)
}

// waits reports whether a message of s still waits to be sent.
func (o *outbox) waits(s *stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.urgent, func(p pending) bool { return p.s == s })
}

// allAcked reports whether all that was sent on s is known to be acknowledged.
func (o *outbox) allAcked(s *stream) bool { return !o.waits(s) && o.acked(o.markOf(s)) }

// allSent reports whether the peer has acknowledged all messages of all streams.
func (o *outbox) allSent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept, err := o.sock.queued()
	return len(o.urgent) == 0 && (err != nil || kept == 0)
}

// close makes every call return: the outbox is over.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.urgent = nil
	o.signal()
}

// wait waits for the goroutine that waited for room. The outbox and the socket are closed.
func (o *outbox) wait() { o.room.Wait() }
