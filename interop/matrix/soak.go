package matrix

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// The size of the soak: soakPairs connections at a time, each with memory of slotCount slots on both sides.
const (
	soakFor   = 20 * time.Second
	soakPairs = 4
	slotCount = 16
	slotSize  = 80_000

	soakEndings = 5
)

func soakCases() []Case {
	return both(Case{Name: "soak", Core: true, Limit: 2 * time.Minute, NoCapture: true, Run: (*T).soak})
}

// soak keeps connections to several siw processes busy with random work of both sides, ends them in all ways, many in the middle of
// that work, and makes them again. It compares all data, and checks that each work request of ours completes once.
func (t *T) soak() {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.figure("seed %#x", seed)
	pairs := make([]*soakPair, soakPairs)
	for i := range pairs {
		pairs[i] = &soakPair{t: t, rng: rng, e: t.open()}
		pairs[i].e.port += 100 * i
	}
	defer func() {
		var sum soakCounts
		for _, s := range pairs {
			sum.add(&s.soakCounts)
		}
		t.figure("%v", &sum)
	}()
	for until := time.Now().Add(soakFor); time.Now().Before(until); {
		pairs[rng.IntN(len(pairs))].step()
	}
	for _, s := range pairs {
		if s.p != nil {
			s.collect()
			s.close()
		}
	}
}

// soakCounts counts what was done.
type soakCounts struct {
	connections, operations, octets int
	flushed                         int
	ends                            [soakEndings]int
}

func (c *soakCounts) add(o *soakCounts) {
	c.connections += o.connections
	c.operations += o.operations
	c.octets += o.octets
	c.flushed += o.flushed
	for i, n := range o.ends {
		c.ends[i] += n
	}
}

func (c *soakCounts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d connections, %d operations with %d octets compared, %d flushed; ended by", c.connections, c.operations, c.octets, c.flushed)
	for i, n := range c.ends {
		fmt.Fprintf(&b, " %s %d", soakEnds[i].name, n)
	}
	return b.String()
}

// A soakPair makes one connection after another between an RNIC of ours and siw processes.
type soakPair struct {
	soakCounts
	t   *T
	rng *rand.Rand
	e   *end
	p   *peer // nil: no connection

	theirs iwarp.RemoteBuffer
	ours   []byte
	mr     *iwarp.MR
	jobs   []soakJob // outstanding, each in its own slot
	seed   int       // of the last pattern
}

// A soakKind is an operation of one side.
type soakKind int

const (
	ourWrite soakKind = iota
	ourRead
	ourSend
	theirWrite
	theirRead
	theirSend
	soakKinds
)

// toUs reports whether the operation places data in our memory.
func (k soakKind) toUs() bool { return k == ourRead || k == theirWrite || k == theirSend }

func (k soakKind) isOurs() bool { return k <= ourSend }

// A soakJob is an operation on n octets of a slot.
type soakJob struct {
	kind         soakKind
	off, n, seed int
}

// step performs the next action: it connects, begins work, waits for the work, or ends the connection in the middle of it.
func (s *soakPair) step() {
	switch {
	case s.p == nil:
		s.connect()
	case len(s.jobs) == 0:
		s.begin()
	case s.rng.IntN(4) > 0:
		s.collect()
	default:
		i := s.rng.IntN(len(soakEnds))
		s.ends[i]++
		if soakEnds[i].idle {
			s.collect()
		}
		soakEnds[i].end(s)
	}
}

func (s *soakPair) connect() {
	e := s.e
	e.port++ // the kernel may still hold the previous port
	s.p = s.t.peer("")
	set := setting{qc: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: s.rng.IntN(2) == 0}}}
	if s.t.Role == Initiator {
		s.p.do("listen %s %d", PeerIP, e.port)
		s.t.initiate(e, s.p, set)
	} else {
		s.t.respond(e, s.p, set)
		require.NoError(s.t, e.listener.Close())
		e.listener = nil
	}
	s.connections++
	s.theirs = s.p.mr(0, slotCount*slotSize, all)
	s.ours, s.mr = e.mr(slotCount*slotSize, ourAll)
}

// begin posts work on both sides.
func (s *soakPair) begin() {
	var wrs []iwarp.SendWR
	for slot := range s.rng.IntN(slotCount) + 1 {
		s.seed++
		j := soakJob{kind: soakKind(s.rng.IntN(int(soakKinds))), n: s.size(), seed: s.seed}
		j.off = s.place(slot, j.n)
		s.jobs = append(s.jobs, j)
		if j.kind.toUs() {
			s.p.fill(0, j.off, j.n, j.seed)
		} else {
			fillPattern(s.ours[j.off:j.off+j.n], j.seed)
		}
		local, remote := s.mr.Slice(j.off, j.n), at(s.theirs, j.off, j.n)
		wr := iwarp.SendWR{ID: uint64(slot), Local: []iwarp.SGE{local}}
		if s.rng.IntN(4) == 0 {
			wr.Flags = iwarp.ReadFence
		}
		switch j.kind {
		case ourWrite:
			wr.Op, wr.Remote = iwarp.OpRDMAWrite, remote
		case ourRead:
			wr.Op, wr.Remote = iwarp.OpRDMARead, remote
		case ourSend:
			s.p.recv(slot, 0, j.off, j.n)
			wr.Op = iwarp.OpSend
		case theirWrite:
			s.p.write(slot, 0, j.off, j.n, "-", s.mr.Advertise(j.off, j.n))
		case theirRead:
			s.p.read(slot, 0, j.off, j.n, "-", s.mr.Advertise(j.off, j.n))
		default:
			s.e.recv(uint64(slot), local)
			s.p.send(slot, 0, j.off, j.n, "-", 0)
		}
		if j.kind.isOurs() {
			wrs = append(wrs, wr)
		}
	}
	if len(wrs) > 0 {
		s.e.post(wrs...)
	}
}

// place returns an offset for n octets in a slot. siw corrupts short data that crosses a page boundary when it sends it
// (siw_try_1seg), so place avoids that.
func (s *soakPair) place(slot, n int) int {
	const page, short = 4096, 32
	begin, end := slot*slotSize, (slot+1)*slotSize
	off := begin + s.rng.IntN(slotSize-n+1)
	before := page - int((s.theirs.TO+uint64(off))%page)
	switch {
	case n > short || n <= before:
		return off
	case off+before+n <= end:
		return off + before
	}
	return off + before - n
}

// size returns the length of an operation: small, around the size of a segment, or any.
func (s *soakPair) size() int {
	switch s.rng.IntN(3) {
	case 0:
		return 1 + s.rng.IntN(100)
	case 1:
		return 1400 + s.rng.IntN(100)
	}
	return 1 + s.rng.IntN(slotSize)
}

// collect waits until all work is done, and compares the data.
func (s *soakPair) collect() {
	sent, received, siw := s.count()
	s.once(s.e.sent(sent), ourWrite, ourRead, ourSend)
	s.once(s.e.received(received), theirSend)
	for _, c := range s.p.good(siw) {
		require.Less(s.t, c.id, uint64(len(s.jobs)))
	}
	s.e.notify(s.p) // after that, our RDMA Writes have arrived
	s.e.notified(s.p)
	for i := range s.jobs {
		s.compare(&s.jobs[i])
	}
	s.jobs = s.jobs[:0]
}

// count returns how many completions the work has: in each of our two CQs, and in the single CQ of the peer.
func (s *soakPair) count() (sent, received, siw int) {
	for _, j := range s.jobs {
		switch {
		case j.kind == ourSend:
			sent++
			siw++
		case j.kind.isOurs():
			sent++
		case j.kind == theirSend:
			received++
			siw++
		default:
			siw++
		}
	}
	return sent, received, siw
}

// once expects one completion of each job of the given kinds.
func (s *soakPair) once(wcs []iwarp.WC, kinds ...soakKind) {
	seen := make(map[uint64]bool)
	for i := range wcs {
		id := wcs[i].ID
		require.False(s.t, seen[id], "work request %d has completed twice", id)
		seen[id] = true
		require.Less(s.t, id, uint64(len(s.jobs)))
		require.Contains(s.t, kinds, s.jobs[id].kind, "work request %d", id)
	}
}

func (s *soakPair) compare(j *soakJob) {
	if j.kind.toUs() {
		s.e.checkPattern(s.ours[j.off:j.off+j.n], j.seed, fmt.Sprintf("operation %d of %d octets", j.kind, j.n))
	} else {
		s.p.check(0, j.off, j.n, j.seed)
	}
	s.operations++
	s.octets += j.n
}

// soakEnds are the ways in which a connection ends; if idle is set, only when no work is outstanding.
var soakEnds = [soakEndings]struct {
	name string
	idle bool
	end  func(s *soakPair)
}{
	{"our Close", true, (*soakPair).close},
	{"siw's disconnect", true, (*soakPair).disconnect},
	{"our Abort", false, (*soakPair).abort},
	{"siw's death", false, (*soakPair).kill},
	{"our Terminate", false, (*soakPair).terminate},
}

func (s *soakPair) close() {
	require.NoError(s.t, s.e.qp.Close(), "our end closes gracefully")
	s.p.do("disconnected")
	s.p.do("destroy")
	s.over()
}

func (s *soakPair) disconnect() {
	s.p.do("disconnect")
	<-s.e.qp.Done()
	require.NoError(s.t, s.e.qp.Err(), "siw's graceful end is graceful here")
	s.over()
}

func (s *soakPair) abort() {
	require.NoError(s.t, s.e.qp.Abort())
	s.flush()
}

func (s *soakPair) kill() {
	s.p.proc.kill()
	s.flush()
}

// terminate makes siw write to an invalid STag.
func (s *soakPair) terminate() {
	rb := s.mr.Advertise(0, 1)
	rb.STag ^= 0x5a5a5a00
	s.p.write(slotCount, 0, 0, 1, "-", rb)
	s.flush()
	require.ErrorIs(s.t, s.e.qp.Err(), iwarp.ErrInvalidSTag)
}

// flush waits for the end of a connection with outstanding work, and checks the data that successful work has placed here.
func (s *soakPair) flush() {
	require.True(s.t, s.t.endsWithin(s.e.qp.Done(), 10*time.Second), "the end is noticed")
	sent, received, _ := s.count()
	wcs := s.e.take(s.e.qp.SendCQ(), sent)
	s.once(wcs, ourWrite, ourRead, ourSend)
	receives := s.e.take(s.e.qp.RecvCQ(), received)
	s.once(receives, theirSend)
	for _, wc := range slices.Concat(wcs, receives) {
		j := &s.jobs[wc.ID]
		switch err := wc.Err(); {
		case err != nil:
			require.ErrorIs(s.t, err, net.ErrClosed, "what was not done is flushed")
			s.flushed++
		case j.kind.toUs():
			s.compare(j)
		}
	}
	s.over()
}

// over also ends the siw process, whose completion queue may hold completions of interrupted work.
func (s *soakPair) over() {
	require.NoError(s.t, s.mr.Close())
	s.p.proc.kill()
	s.p, s.jobs = nil, nil
}
