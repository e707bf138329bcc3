package commit_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

const sector = 512

// A simulator is a disk that loses its power: what was not synced is then there or not,
// sector by sector, however old.
type simulator struct {
	mu      sync.Mutex
	now     []byte // what reading returns
	durable []byte // what survives for certain
}

func newSimulator(size int) *simulator {
	return &simulator{now: make([]byte, size), durable: make([]byte, size)}
}

func (s *simulator) Size() int64 { return int64(len(s.now)) }

func (s *simulator) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copy(p, s.now[off:]), nil
}

// WriteAt takes its time: others may sync before the octets are there.
func (s *simulator) WriteAt(p []byte, off int64) (int, error) {
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	return copy(s.now[off:], p), nil
}

func (s *simulator) Sync() error { return s.sync([]commit.Range{{Len: s.Size()}}) }

// sync takes its time: the power may go in the middle of it.
func (s *simulator) sync(ranges []commit.Range) error {
	for _, r := range ranges {
		for off := r.Off &^ (sector - 1); off < r.Off+r.Len; off += sector {
			s.mu.Lock()
			copy(s.durable[off:off+sector], s.now[off:off+sector])
			s.mu.Unlock()
			if off/sector%8 == 0 {
				runtime.Gosched()
			}
		}
	}
	return nil
}

// crash returns what would be on the disk if the power went now.
func (s *simulator) crash(rnd *rand.Rand, image []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(image, s.durable)
	for off := 0; off < len(image); off += sector {
		if rnd.IntN(2) == 0 {
			copy(image[off:off+sector], s.now[off:off+sector])
		}
	}
}

// A ledger is what requesters know of their peer's memory: the value of each octet when a
// Commit of it was acknowledged, and the values written to it since.
type ledger struct {
	may    [][]byte // of each octet, in order of writing
	older  []int    // how many values an acknowledged Commit has made obsolete
	placed []int    // how many values the peer is known to have placed
}

func newLedger(size int) *ledger {
	l := &ledger{may: make([][]byte, size), older: make([]int, size), placed: make([]int, size)}
	for i := range l.may {
		l.may[i] = []byte{0}
		l.placed[i] = 1
	}
	return l
}

func (l *ledger) wrote(off int, p []byte) {
	for i, b := range p {
		l.may[off+i] = append(l.may[off+i], b)
	}
}

// values is how many values an octet has had.
func (l *ledger) values(at int) int { return l.older[at] + len(l.may[at]) }

// A question is an outstanding Commit.
type question struct {
	off  int
	lens []int // how many values of each octet it makes obsolete, but for the last
}

// acknowledged: each octet that the Commit covers has its last value, or a later one.
func (l *ledger) acknowledged(q question) {
	for i, n := range q.lens {
		at := q.off + i
		if drop := n - 1 - l.older[at]; drop > 0 {
			l.may[at] = l.may[at][drop:]
			l.older[at] += drop
		}
	}
}

func (l *ledger) check(t *testing.T, image []byte) {
	for i, b := range image {
		if !slices.Contains(l.may[i], b) {
			require.Failf(t, "acknowledged octets are lost", "octet %d is %#x, not one of %x", i, b, l.may[i])
		}
	}
}

// TestCMT_13_14_15_CrashSimulator writes and commits at random, on one to three streams,
// and lets the power go at random moments: nothing that was acknowledged is ever lost.
func TestCMT_13_14_15_CrashSimulator(t *testing.T) {
	const size, programs = 12 << 10, 20
	crashes := 10000
	if raceorder.Enabled {
		crashes = 1000
	}
	for seed := range uint64(programs) {
		disk := newSimulator(size)
		var backing *commit.Buffer
		var err error
		if seed%2 == 0 {
			backing, err = commit.NewBuffer(disk)
			require.NoError(t, err)
		} else {
			backing = commit.NewRanges(disk, disk.sync)
		}
		p := newProgram(t, backing, int(1+seed/2%3))
		p.Rand = rand.New(rand.NewPCG(seed, 1))
		p.run(disk, crashes/programs)
	}
}

// A program is what requesters do, each on a stream of its own, and their view of the
// peer.
type program struct {
	*testing.T
	*rand.Rand
	streams []*stream
	ledger  *ledger
}

// stripe is how many octets in a row belong to one stream. What a stream has written is only
// known to be behind what another has if they write to octets of their own; but sectors and
// chunks they share.
const stripe = 700

// A stream writes to its own octets and commits all.
type stream struct {
	*program
	index int
	qp    *iwarp.QP
	peer  iwarp.RemoteBuffer
	sink  *iwarp.MR
	asked []question
	wcs   [16]iwarp.WC
}

func newProgram(t *testing.T, backing *commit.Buffer, streams int) *program {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	target, targetPD := rnictest.Open(t, nil)
	requester, requesterPD := rnictest.Open(t, nil)
	mr, err := targetPD.RegisterBuffer(backing, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{Durable: backing})
	require.NoError(t, err)
	sink, err := requesterPD.RegisterMR(make([]byte, 1), stag.LocalWrite, nil)
	require.NoError(t, err)
	l, err := target.Listen(ctx, "pipe", "", nil)
	require.NoError(t, err)
	size := int(backing.Size())
	p := &program{T: t, ledger: newLedger(size)}
	for i := range streams {
		accepted := make(chan error, 1)
		go func() {
			cr, err := l.Accept(ctx)
			if err == nil {
				_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: targetPD, Commit: &iwarp.CommitOptions{}})
			}
			accepted <- err
		}()
		qp, err := requester.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: requesterPD, Commit: &iwarp.CommitOptions{}})
		require.NoError(t, err)
		require.NoError(t, <-accepted)
		p.streams = append(p.streams, &stream{program: p, index: i, qp: qp, peer: mr.Advertise(0, size), sink: sink})
	}
	return p
}

func (p *program) run(disk *simulator, crashes int) {
	image := make([]byte, disk.Size())
	for crashed := 0; crashed < crashes; {
		s := p.streams[p.IntN(len(p.streams))]
		switch p.IntN(16) {
		case 0, 1, 2, 3, 4, 5:
			s.write()
		case 6, 7, 8, 9:
			s.commit()
		case 10, 11:
			s.acknowledge(false)
		case 12:
			s.acknowledge(true)
		case 13:
			s.read()
		default:
			disk.crash(p.Rand, image)
			p.ledger.check(p.T, image)
			crashed++
		}
	}
	for _, s := range p.streams {
		s.acknowledge(true)
	}
}

// owns reports whether s is the stream that writes to an octet.
func (s *stream) owns(at int) bool { return at/stripe%len(s.streams) == s.index }

func (s *stream) part(off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: s.peer.STag, TO: s.peer.TO + uint64(off), Len: uint32(n)}
}

func (s *stream) write() {
	off, n := s.IntN(len(s.ledger.may)), 1
	for !s.owns(off) {
		off = s.IntN(len(s.ledger.may))
	}
	for most := 1 + s.IntN(1024); n < most && off+n < len(s.ledger.may) && s.owns(off+n); {
		n++
	}
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(s.Uint32())
	}
	s.post(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: data, Remote: s.part(off, n)})
	s.ledger.wrote(off, data)
}

// read shows that everything that s has written is placed: by RFC 5040 section 5.5 the
// response waits for it. Every Commit that any stream posts from now on covers it.
func (s *stream) read() {
	require.NoError(s, s.qp.RDMARead(context.Background(), s.sink.Slice(0, 1), s.part(0, 1)))
	for at := range s.ledger.placed {
		if s.owns(at) {
			s.ledger.placed[at] = s.ledger.values(at)
		}
	}
}

func (s *stream) commit() {
	if len(s.asked) == 8 {
		s.acknowledge(true)
	}
	off := s.IntN(len(s.ledger.may))
	n := 1 + s.IntN(len(s.ledger.may)-off)
	s.asked = append(s.asked, s.question(off, n))
	s.post(iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{s.part(off, n/2), s.part(off+n/2, n-n/2)}})
}

// question returns the question of a Commit: it covers what s has sent before, and what the
// other streams have had placed before.
func (s *stream) question(off, n int) question {
	q := question{off: off, lens: make([]int, n)}
	for i := range q.lens {
		if s.owns(off + i) {
			q.lens[i] = s.ledger.values(off + i)
		} else {
			q.lens[i] = s.ledger.placed[off+i]
		}
	}
	return q
}

func (s *stream) post(wr iwarp.SendWR) {
	for {
		err := s.qp.PostSend(wr)
		if err == nil {
			return
		}
		require.ErrorIs(s, err, iwarp.ErrQueueFull)
		runtime.Gosched()
	}
}

// acknowledge takes the answers that have come; all: it waits for the others, too.
func (s *stream) acknowledge(all bool) {
	for len(s.asked) > 0 {
		n := s.qp.SendCQ().Poll(s.wcs[:])
		if n == 0 && all {
			var err error
			n, err = s.qp.SendCQ().Wait(context.Background(), s.wcs[:])
			require.NoError(s, err)
		}
		if n == 0 {
			return
		}
		for _, wc := range s.wcs[:n] {
			require.NoError(s, wc.Err())
			s.ledger.acknowledged(s.asked[0])
			s.asked = s.asked[1:]
		}
	}
}
