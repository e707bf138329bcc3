package recordpipe

import (
	"syscall"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/transport"
)

// batch holds the segments that were appended and are not yet flushed. Segments
// and their memory are reused.
type batch struct {
	segs []outSegment
	sent int    // how many of segs are out
	seq  uint64 // of the next to go out
}

// outSegment is a segment: octets copied from the caller, then payload that the
// caller still owns.
type outSegment struct {
	own     []byte
	payload [][]byte
}

func (s *outSegment) size() int {
	n := len(s.own)
	for _, b := range s.payload {
		n += len(b)
	}
	return n
}

// stage copies payload, which another peer may be writing.
func (s *outSegment) stage(payload [][]byte) {
	raceorder.Lock()
	defer raceorder.Unlock()
	for _, b := range payload {
		s.own = append(s.own, b...)
	}
}

func (e *end) Append(head []byte, payload [][]byte, stage bool) bool {
	o := &e.out
	n := len(o.segs)
	if n == e.pipe.options.Batch {
		return false
	}
	if n < cap(o.segs) {
		o.segs = o.segs[:n+1]
	} else {
		o.segs = append(o.segs, outSegment{})
	}
	s := &o.segs[n]
	s.own = append(s.own[:0], head...)
	if !stage {
		s.payload = append(s.payload[:0], payload...)
		return true
	}
	s.stage(payload)
	return true
}

func (e *end) Stage() {
	o := &e.out
	for i := o.sent; i < len(o.segs); i++ {
		s := &o.segs[i]
		s.stage(s.payload)
		clear(s.payload)
		s.payload = s.payload[:0]
	}
}

func (e *end) Flush(wait bool) error {
	p, o := e.pipe, &e.out
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(o.segs) > 0 {
		if err := e.cannotSend(); err != nil {
			return err
		}
		if e.flushSome() {
			p.changed.Broadcast()
		}
		if o.sent == len(o.segs) {
			o.segs, o.sent = o.segs[:0], 0
			break
		}
		if !wait {
			return transport.ErrAgain
		}
		p.changed.Wait()
	}
	return nil
}

// cannotSend returns why nothing can be sent any more, or nil.
func (e *end) cannotSend() error {
	if err := e.failure("write"); err != nil {
		return err
	}
	if e.peer.closed != nil {
		return e.opError("write", syscall.ECONNRESET)
	}
	if e.peer.in.ended {
		return e.opError("write", syscall.EPIPE)
	}
	return nil
}

// flushSome moves the segments for which there is room to the peer.
func (e *end) flushSome() (some bool) {
	o, q := &e.out, &e.peer.in
	for o.sent < len(o.segs) {
		s := &o.segs[o.sent]
		size := s.size()
		if q.octets > 0 && q.octets+size > e.pipe.options.Limit {
			break
		}
		q.push(o.seq, size, s)
		clear(s.payload) // the caller owns it again
		s.payload = s.payload[:0]
		o.sent++
		o.seq++
		some = true
	}
	return some
}
