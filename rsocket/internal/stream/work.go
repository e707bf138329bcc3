package stream

import "github.com/goiwarp/iwarp/rsocket/internal/wire"

// A Work is what is to be posted: a message, a Write ahead of it, or both.
type Work struct {
	Message wire.Message
	Writes  Writes
	Addr    uint64    // of the peer, to be written
	Key     uint32    // likewise
	Off, N  int       // of the ring, if data is written
	Slot    wire.Slot // if a slot is
	Entry   wire.Entry
	Quiet   bool // it needs no completion of its own: that of a later message covers it
}

// Writes says what is written, ahead of the message if there is one.
type Writes uint8

const (
	Nothing Writes = iota
	Data
	OneSlot
	OneEntry
	Mapped // data, without a message
)

// Next returns what is to be posted now, and takes it as posted. It reports false if there is nothing.
func (s *Stream) Next() (Work, bool) {
	if s.life.said == sayGone {
		return Work{}, false
	}
	if w, ok := s.nextSGL(); ok {
		return w, true
	}
	if w, ok := s.nextEntry(); ok {
		return w, true
	}
	if w, ok := s.nextData(); ok {
		return w, true
	}
	return s.nextLast()
}

// wantsSGL reports whether the peer is to be told of a half or of credits.
func (s *Stream) wantsSGL() bool {
	return s.life.heard == hearOpen && (s.in.freeHalf(s.table.Slots) || s.in.owesCredits())
}

func (s *Stream) nextSGL() (Work, bool) {
	if !s.wantsSGL() || s.posts.controls >= maxControls {
		return Work{}, false
	}
	// A peer that cannot go on without this message must poll to see it. Holding it back for lack of
	// proof would stop a stream in one direction for ever.
	if !s.polls.mayControl() && !s.in.starves() {
		return Work{}, false
	}
	half := s.in.freeHalf(s.table.Slots)
	// The limit may take more than 16 bits, as librdmacm's does.
	w := Work{Message: wire.NewMessage(wire.OpSGL, uint32(uint16(s.in.seq))+uint32(s.in.credits))}
	if half {
		w.Writes = OneSlot
		w.Addr, w.Key = s.table.Addr+wire.SlotSize*uint64(s.at), s.table.Key
		w.Slot = s.in.halves[s.in.next].Slot
		s.at = (s.at + 1) % s.table.Slots
	}
	s.polls.control(s.in.proof())
	s.in.tell(half)
	s.posts.control()
	w.Quiet = s.quiet()
	return w, true
}

func (s *Stream) nextData() (Work, bool) {
	if s.posts.full() || !s.polls.mayData() {
		return Work{}, false
	}
	off, n, to := s.out.piece()
	if n == 0 {
		return Work{}, false
	}
	s.out.advance(n)
	s.polls.sent++
	s.posts.data(n)
	return Work{
		Message: wire.NewMessage(wire.OpData, uint32(n)),
		Writes:  Data, Addr: to.Addr, Key: to.Key, Off: off, N: n,
		Quiet: s.quiet(),
	}, true
}

func (s *Stream) nextLast() (Work, bool) {
	if s.queued() {
		return Work{}, false
	}
	m, ok := s.life.last()
	if !ok {
		return Work{}, false
	}
	s.polls.control(proof{messages: s.in.limit, octets: noOctets})
	s.posts.control()
	s.posts.quiet = tail{}
	return Work{Message: m}, true
}

// quiet reports whether the newest message may be quiet. A completion wakes a goroutine, so most small messages have none.
// But a wait for octets of the ring, or for one more message, ends only with the completion of a message that is not
// quiet: so the quiet messages behind the last such message are bounded to a part of the ring and of the messages.
func (s *Stream) quiet() bool {
	q := &s.posts.quiet
	if q.octets < s.out.ring/8 && q.messages < maxPosts/4 && q.controls < maxControls/2 {
		return true
	}
	*q = tail{}
	return false
}

// Completed records that the oldest message of the QP has left it.
func (s *Stream) Completed() { s.out.freed += uint64(s.posts.pop()) }

// posts are the messages that are posted to the QP, in order. Completions come in the same order.
type posts struct {
	octets   [maxPosts + maxControls + 2]int // of data, or aControl
	first, n int
	controls int  // how many are not of data
	quiet    tail // the newest messages, all of them quiet
}

// A tail counts some of the newest messages.
type tail struct{ messages, controls, octets int }

// aControl stands for a message without data of the program.
const aControl = 0

func (p *posts) full() bool { return p.n-p.controls >= maxPosts }

func (p *posts) data(n int) { p.push(n) }

func (p *posts) control() {
	p.controls++
	p.quiet.controls++
	p.push(aControl)
}

func (p *posts) push(n int) {
	p.octets[(p.first+p.n)%len(p.octets)] = n
	p.n++
	p.quiet.messages++
	p.quiet.octets += n
}

// pop returns the octets of data of the oldest message.
func (p *posts) pop() int {
	n := p.octets[p.first]
	p.first = (p.first + 1) % len(p.octets)
	p.n--
	if n == aControl {
		p.controls--
	}
	return n
}
