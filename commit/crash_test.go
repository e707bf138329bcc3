package commit_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
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

func (s *simulator) WriteAt(p []byte, off int64) (int, error) {
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

// A ledger is what a requester knows of its peer's memory: of each octet what it was when
// a Commit of it was acknowledged, and what was written to it since.
type ledger struct {
	may [][]byte // of each octet, in order of writing
}

func newLedger(size int) *ledger {
	l := &ledger{may: make([][]byte, size)}
	for i := range l.may {
		l.may[i] = []byte{0}
	}
	return l
}

func (l *ledger) wrote(off int, p []byte) {
	for i, b := range p {
		l.may[off+i] = append(l.may[off+i], b)
	}
}

// asked remembers how much was written when a Commit of a range was posted.
func (l *ledger) asked(off, n int) (lens []int) {
	for _, m := range l.may[off : off+n] {
		lens = append(lens, len(m))
	}
	return lens
}

// A question is a Commit that is under way.
type question struct {
	off, n int
	lens   []int
}

// acknowledged: what was written before the Commit was posted is there, or something
// later. Commits are acknowledged in order; older is how many values of each octet the ones
// before have made obsolete.
func (l *ledger) acknowledged(q question, older []int) {
	for i, n := range q.lens {
		at := q.off + i
		if drop := n - 1 - older[at]; drop > 0 {
			l.may[at] = l.may[at][drop:]
			older[at] += drop
		}
	}
}

func (l *ledger) check(t *testing.T, image []byte) {
	for i, b := range image {
		found := false
		for _, v := range l.may[i] {
			found = found || v == b
		}
		if !found {
			require.Failf(t, "acknowledged octets are lost", "octet %d is %#x, not one of %x", i, b, l.may[i])
		}
	}
}

// TestCMT_13_14_15_CrashSimulator writes and commits at random, and lets the power go
// at random moments: nothing that was acknowledged is ever lost.
func TestCMT_13_14_15_CrashSimulator(t *testing.T) {
	const size, programs = 12 << 10, 20
	crashes := 10000
	if commit.RaceEnabled {
		crashes = 1000
	}
	for program := range uint64(programs) {
		rnd := rand.New(rand.NewPCG(program, 1))
		disk := newSimulator(size)
		var backing *commit.Buffer
		var err error
		if program%2 == 0 {
			backing, err = commit.NewBuffer(disk)
			require.NoError(t, err)
		} else {
			backing = commit.NewRanges(disk, disk.sync)
		}
		p := newProgram(t, backing)
		p.run(rnd, disk, crashes/programs)
	}
}

// A program is a requester and its view of the peer.
type program struct {
	*testing.T
	qp     *iwarp.QP
	peer   iwarp.RemoteBuffer
	ledger *ledger
	older  []int // see acknowledged
	asked  []question
	wcs    []iwarp.WC
}

func newProgram(t *testing.T, backing *commit.Buffer) *program {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	target, requester := openRNIC(t), openRNIC(t)
	mr, err := target.pd.RegisterBuffer(backing, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: backing})
	require.NoError(t, err)
	l, err := target.rnic.Listen(ctx, "pipe", "", nil)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: target.pd, Commit: &iwarp.CommitOptions{}})
		}
		accepted <- err
	}()
	qp, err := requester.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: requester.pd, Commit: &iwarp.CommitOptions{}})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	size := int(backing.Size())
	return &program{T: t, qp: qp, peer: mr.Advertise(0, size), ledger: newLedger(size), older: make([]int, size), wcs: make([]iwarp.WC, 16)}
}

type opened struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func openRNIC(t *testing.T) opened {
	r, err := iwarp.Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	pd, err := r.AllocPD()
	require.NoError(t, err)
	return opened{r, pd}
}

func (p *program) part(off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: p.peer.STag, TO: p.peer.TO + uint64(off), Len: uint32(n)}
}

func (p *program) run(rnd *rand.Rand, disk *simulator, crashes int) {
	image := make([]byte, disk.Size())
	for crashed := 0; crashed < crashes; {
		switch rnd.IntN(8) {
		case 0, 1, 2:
			p.write(rnd)
		case 3, 4:
			p.commit(rnd)
		case 5:
			p.acknowledge(false)
		case 6:
			p.acknowledge(true)
		default:
			disk.crash(rnd, image)
			p.ledger.check(p.T, image)
			crashed++
		}
	}
	p.acknowledge(true)
}

func (p *program) write(rnd *rand.Rand) {
	off := rnd.IntN(len(p.ledger.may))
	data := make([]byte, 1+rnd.IntN(min(1024, len(p.ledger.may)-off)))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	wr := iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: data, Remote: p.part(off, len(data))}
	p.post(wr)
	p.ledger.wrote(off, data)
}

func (p *program) commit(rnd *rand.Rand) {
	if len(p.asked) == 8 {
		p.acknowledge(true)
	}
	off := rnd.IntN(len(p.ledger.may))
	n := 1 + rnd.IntN(len(p.ledger.may)-off)
	p.asked = append(p.asked, question{off, n, p.lens(off, n)})
	p.post(iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{p.part(off, n/2), p.part(off+n/2, n-n/2)}})
}

// lens is how many values each octet has had.
func (p *program) lens(off, n int) []int {
	lens := p.ledger.asked(off, n)
	for i := range lens {
		lens[i] += p.older[off+i]
	}
	return lens
}

func (p *program) post(wr iwarp.SendWR) {
	for {
		err := p.qp.PostSend(wr)
		if err == nil {
			return
		}
		require.ErrorIs(p, err, iwarp.ErrQueueFull)
		runtime.Gosched()
	}
}

// acknowledge takes the answers that have come; all: those that have not, too.
func (p *program) acknowledge(all bool) {
	for len(p.asked) > 0 {
		n := p.qp.SendCQ().Poll(p.wcs)
		if n == 0 && all {
			var err error
			n, err = p.qp.SendCQ().Wait(context.Background(), p.wcs)
			require.NoError(p, err)
		}
		if n == 0 {
			return
		}
		for _, wc := range p.wcs[:n] {
			require.NoError(p, wc.Err())
			p.ledger.acknowledged(p.asked[0], p.older)
			p.asked = p.asked[1:]
		}
	}
}
