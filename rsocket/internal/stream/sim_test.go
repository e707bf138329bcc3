package stream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A protocol is a Stream, or an emulation of a peer's protocol.
type protocol interface {
	Room() (off, n int)
	Queue(n int)
	Readable() (half, off, n int)
	Consume(n int)
	Next() (Work, bool)
	Completed()
	Message(m wire.Message, t Table) error
}

// An end is one end of a stream in a process without a network: its memory, and the messages that have come
// and were not polled.
type end struct {
	protocol
	testing.TB
	name  string
	peer  *end
	in    []byte   // two halves, from address 0
	large [][]byte // halves that took their places
	out   []byte   // what is to be sent
	slots [Slots]wire.Slot
	queue []wire.Message // each occupies a receive
	size  int            // receives
	posts []bool         // messages that are with the QP, or whose completions have not come: whether they are quiet
	left  int            // of them, those that have left the QP
	late  bool           // it learns of what has left the QP only when it polls

	wrote, read int
	messages    int // of data that were sent
	most        int // messages that were in the queue at one time
}

// sizes are the parameters of an end.
type sizes struct{ half, credits, ring int }

const (
	simKey   = 7
	simLarge = 1000 // and the keys behind it
)

func (z sizes) config() Config {
	return Config{Half: uint32(z.half), Key: simKey, Credits: uint16(z.credits), Ring: z.ring}
}

func (z sizes) private() wire.Private {
	return wire.Private{
		Credits: uint16(z.credits), Table: wire.Table{Addr: 0, Key: simKey + 1, Slots: Slots},
		Half: wire.Slot{Key: simKey, Length: uint32(z.half)},
	}
}

// join makes two ends.
func join(t testing.TB, a, b sizes) (x, y *end) {
	x = &end{TB: t, name: "a", protocol: New(a.config(), b.private()), size: a.credits}
	y = &end{TB: t, name: "b", protocol: New(b.config(), a.private()), size: b.credits}
	x.in, x.out, y.in, y.out = make([]byte, 2*a.half), make([]byte, a.ring), make([]byte, 2*b.half), make([]byte, b.ring)
	x.peer, y.peer = y, x
	return x, y
}

// Take implements Table.
func (e *end) Take(i int) wire.Slot {
	s := e.slots[i]
	e.slots[i] = wire.Slot{}
	return s
}

// Entry implements Table: there is no iomap.
func (e *end) Entry(int) wire.Entry { return wire.Entry{} }

// octet returns octet i of each direction.
func octet(i int) byte { return byte(i*7 + i>>8) }

// write writes at most n octets, and returns how many.
func (e *end) write(n int) int {
	off, room := e.Room()
	n = min(n, room)
	for i := range n {
		e.out[off+i] = octet(e.wrote + i)
	}
	e.Queue(n)
	e.wrote += n
	return n
}

// consumes reads at most n octets, and returns how many.
func (e *end) consumes(n int) int {
	half, off, there := e.Readable()
	mem := e.in
	if s, ok := e.protocol.(*Stream); ok {
		at := s.in.halves[half]
		mem = e.memory(at.Key)[at.Addr:][:at.Length]
	}
	n = min(n, there)
	for i := range n {
		if mem[off+i] != octet(e.read+i) {
			e.Fatalf("%s reads %#x in place of %#x at %d", e.name, mem[off+i], octet(e.read+i), e.read+i)
		}
	}
	e.Consume(n)
	e.read += n
	return n
}

// memory returns the memory that a key stands for.
func (e *end) memory(key uint32) []byte {
	if key == simKey {
		return e.in
	}
	return e.large[key-simLarge]
}

// enlarge replaces the half that is told next, if any, by one that is n octets larger.
func (e *end) enlarge(n int) {
	s, ok := e.protocol.(*Stream)
	if !ok || !s.in.freeHalf(Slots) {
		return
	}
	size := int(s.in.halves[s.in.next].Length) + n
	s.Larger(wire.Slot{Key: simLarge + uint32(len(e.large)), Length: uint32(size)})
	e.large = append(e.large, make([]byte, size))
}

// send sends everything that is due, and reports whether there was anything.
func (e *end) send() (sent bool) {
	for w, ok := e.Next(); ok; w, ok = e.Next() {
		sent = true
		e.deliver(w)
		e.posts = append(e.posts, w.Quiet)
	}
	return sent
}

func (e *end) deliver(w Work) {
	switch w.Writes {
	case Data:
		e.messages++
		if half := uint64(len(e.peer.in) / 2); w.Key == simKey && w.Addr/half != (w.Addr+uint64(w.N)-1)/half {
			e.Fatalf("%+v spans halves", w)
		}
		copy(e.peer.memory(w.Key)[w.Addr:w.Addr+uint64(w.N)], e.out[w.Off:w.Off+w.N])
	case OneSlot:
		e.peer.slots[w.Addr/wire.SlotSize] = w.Slot
	case OneEntry, Mapped, Nothing:
	}
	e.peer.queue = append(e.peer.queue, w.Message)
	e.peer.most = max(e.peer.most, len(e.peer.queue))
	if len(e.peer.queue) > e.peer.size {
		e.Fatalf("%v to %s finds no receive", w.Message, e.peer.name)
	}
}

// completes lets at most n messages leave the QP, and reports whether there were completions.
func (e *end) completes(n int) bool {
	e.left = min(e.left+n, len(e.posts))
	told := e.left
	for told > 0 && e.posts[told-1] {
		told--
	}
	for range told {
		e.Completed()
	}
	e.posts = e.posts[:copy(e.posts, e.posts[told:])]
	e.left -= told
	return told > 0
}

// poll takes all messages that have come.
func (e *end) poll() bool {
	n := len(e.queue)
	for _, m := range e.queue {
		if err := e.Message(m, e); err != nil {
			e.Fatalf("%s: %v: %v", e.name, m, err)
		}
	}
	e.queue = e.queue[:0]
	return n > 0
}

// A program says what an end does.
type program struct {
	total  int // octets that it writes
	write  int // at a time, at most
	reads  int // at a time, at most
	random bool
	grows  int // octets by which halves grow now and then, at most
}

func (p program) some(r *rand.Rand, n int) int {
	if p.random {
		return 1 + r.IntN(n)
	}
	return n
}

// turn does one step of a program as late as it can: it polls only when it can neither write nor read. It
// reports whether it did anything.
func (e *end) turn(p program, r *rand.Rand) bool {
	if !e.late {
		e.completes(p.some(r, 8))
	}
	did := false
	if left := p.total - e.wrote; left > 0 {
		did = e.write(min(left, p.some(r, p.write))) > 0
	}
	if e.consumes(p.some(r, p.reads)) > 0 {
		did = true
	}
	if p.grows > 0 && len(e.large) < 20 && r.IntN(4) == 0 {
		e.enlarge(r.IntN(p.grows))
	}
	if e.send() {
		did = true
	}
	if did {
		return true
	}
	polled := e.poll()
	return e.completes(len(e.posts)) || polled
}

// run lets both ends go on until all octets were read.
func run(t testing.TB, a, b *end, pa, pb program, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for a.read < pb.total || b.read < pa.total {
		did := false
		for range 1 + r.IntN(3) {
			did = a.turn(pa, r) || did
		}
		for range 1 + r.IntN(3) {
			did = b.turn(pb, r) || did
		}
		if !did {
			require.Fail(t, "it stands still", "a wrote %d, read %d; b wrote %d, read %d; %+v %+v", a.wrote, a.read, b.wrote, b.read, a.protocol, b.protocol)
		}
	}
}
