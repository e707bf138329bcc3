package rmaperf

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/rma"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	// maxOp is the length of the longest operation.
	maxOp = 64 * kib
	// manySlots is how many operations of 4 KiB are outstanding.
	manySlots = 32
	// inFlight is how many octets are in flight in large reads: operations of 64 KiB, Reads of 1 MiB. With TLS it is as
	// many as the socket buffers take.
	inFlight = 4 * mib
)

// Operations through a Portal. A direct read that fails may leave anything in its buffer, like an RDMA Read or a
// read of a stream, which are compared with it.
var (
	aRead      = rma.Command{Op: rma.Read}
	directRead = rma.Command{Op: rma.Read, Direct: true}
	aWrite     = rma.Command{Op: rma.Write}
)

// A stand holds what a comparison needs, until close.
type stand struct {
	b     *bench
	ends  contest.Ends
	conts []*contest.Contender
}

func (s *stand) close() error { return s.ends.Close() }

// on makes comparisons, each on a stand of its own.
func (b *bench) on(comparisons ...func(*stand) error) error {
	for _, f := range comparisons {
		s := &stand{b: b}
		err := f(s)
		if err := errors.Join(err, s.close()); err != nil {
			return err
		}
	}
	return nil
}

// open opens a service until close.
func (s *stand) open(what *service) (string, error) {
	a, closed, err := s.b.open(what)
	if err == nil {
		s.ends = append(s.ends, func() error { closed(); return nil })
	}
	return a.Addr, err
}

func (s *stand) add(name string, size int, a arm) *contest.Contender {
	s.ends = append(s.ends, a.close)
	c := &contest.Contender{Name: name, Size: size, Run: a.run}
	s.conts = append(s.conts, c)
	return c
}

// slots connects to a server with a region that has room for the given number of operations.
func (s *stand) slots(sealed bool, slots, size int) (*end, error) {
	srv := &service{Kind: kindRMA, CRC: s.b.opts.CRC, Sealed: sealed, MaxOp: size, Regions: 1, Size: slots * size}
	addr, err := s.open(srv)
	if err != nil {
		return nil, err
	}
	return s.end(addr, srv, slots)
}

// executor adds sealed reads of blocks by an Executor.
func (s *stand) executor(blocks, size int) (*contest.Contender, error) {
	e, err := s.slots(true, blocks*size/maxOp, maxOp)
	if err != nil {
		return nil, err
	}
	a, err := newExecutorArm(e, blocks, size)
	if err != nil {
		return nil, err
	}
	c := &contest.Contender{Name: fmt.Sprintf("reads of %d MiB by an Executor, suite 1, %d under way", size/mib, blocks), Size: size, Run: a.run}
	s.conts = append(s.conts, c)
	return c, nil
}

// rma adds operations through a Portal.
func (s *stand) rma(sealed bool, cmd rma.Command, slots, size int) (*contest.Contender, error) {
	e, err := s.slots(sealed, slots, size)
	if err != nil {
		return nil, err
	}
	a, err := newPortalArm(e, cmd, slots, size)
	if err != nil {
		return nil, err
	}
	how := "suite 0"
	if sealed {
		how = "suite 1"
	}
	if cmd.Direct {
		how += ", direct"
	}
	c := &contest.Contender{Name: fmt.Sprintf("%v of %d KiB, %s, %d under way", cmd.Op, size/kib, how, slots), Size: size, Run: a.run}
	s.conts = append(s.conts, c)
	return c, nil
}

// plain adds RDMA Reads.
func (s *stand) plain(depth, size int) (*contest.Contender, error) {
	srv := &service{Kind: kindPlain, CRC: s.b.opts.CRC, Size: depth * size, Depth: depth}
	addr, err := s.open(srv)
	if err != nil {
		return nil, err
	}
	a, err := dialPlain(s.b.ctx, addr, srv, size)
	if err != nil {
		return nil, err
	}
	return s.add(fmt.Sprintf("RDMA Read of %d KiB, %d under way", size/kib, depth), size, a), nil
}

// tls adds a stream.
func (s *stand) tls() (*contest.Contender, error) {
	addr, err := s.open(&service{Kind: kindTLS})
	if err != nil {
		return nil, err
	}
	a, err := dialStream(s.b.ctx, addr)
	if err != nil {
		return nil, err
	}
	return s.add("TLS stream, "+a.suite()+", blocks of 1 MiB", streamBlock, a), nil
}

// perCore compares sealed reads with the same reads without keys, with plain RDMA Reads, and with TLS, by the octets that
// a second of processor time of both processes moves; and counts their allocations, and those of writes.
func (b *bench) perCore() error { return b.on((*stand).small, (*stand).middle, (*stand).large) }

// small measures operations of 4 KiB.
func (s *stand) small() error {
	sealed, err := s.rma(true, aRead, manySlots, 4*kib)
	if err != nil {
		return err
	}
	bare, err := s.rma(false, aRead, manySlots, 4*kib)
	if err != nil {
		return err
	}
	direct, err := s.rma(true, directRead, manySlots, 4*kib)
	if err != nil {
		return err
	}
	plain, err := s.plain(manySlots, 4*kib)
	if err != nil {
		return err
	}
	writes, err := s.rma(true, aWrite, manySlots, 4*kib)
	if err != nil {
		return err
	}
	if err := s.b.compare(s.conts...); err != nil {
		return err
	}
	m := &s.b.Marks
	m.Least("4 KiB sealed reads per core, against suite 0", sealed.Against(bare, contest.PerCore), 0.80)
	m.Least("4 KiB sealed reads per core, against RDMA Reads", direct.Against(plain, contest.PerCore), 0.50)
	m.Most("allocations of a sealed read, both processes", sealed.Median(contest.Allocs), mostAllocs, "")
	m.Most("allocations of a sealed write, both processes", writes.Median(contest.Allocs), mostAllocs, "")
	return nil
}

// mostAllocs is one allocation per operation, for the Region that enabling its sink makes, and the occasional allocations of the
// runtime.
const mostAllocs = 1.02

// middle measures operations of 64 KiB.
func (s *stand) middle() error {
	sealed, err := s.rma(true, aRead, mib/maxOp, maxOp)
	if err != nil {
		return err
	}
	bare, err := s.rma(false, aRead, mib/maxOp, maxOp)
	if err != nil {
		return err
	}
	if err := s.b.compare(s.conts...); err != nil {
		return err
	}
	s.b.Marks.Least("64 KiB sealed reads per core, against suite 0", sealed.Against(bare, contest.PerCore), 0.60)
	return nil
}

// large measures blocks of 1 MiB, which are 16 operations.
func (s *stand) large() error {
	sealed, err := s.rma(true, aRead, inFlight/maxOp, maxOp)
	if err != nil {
		return err
	}
	bare, err := s.rma(false, aRead, inFlight/maxOp, maxOp)
	if err != nil {
		return err
	}
	direct, err := s.rma(true, directRead, inFlight/maxOp, maxOp)
	if err != nil {
		return err
	}
	plain, err := s.plain(inFlight/mib, mib)
	if err != nil {
		return err
	}
	stream, err := s.tls()
	if err != nil {
		return err
	}
	if _, err := s.executor(inFlight/mib, mib); err != nil {
		return err
	}
	if err := s.b.compare(s.conts...); err != nil {
		return err
	}
	m := &s.b.Marks
	m.Least("1 MiB sealed reads per core, against suite 0", sealed.Against(bare, contest.PerCore), 0.65)
	m.Least("1 MiB sealed reads per core, against RDMA Reads", direct.Against(plain, contest.PerCore), 0.40)
	m.Least("1 MiB sealed reads per core, against Go TLS 1.3", direct.Against(stream, contest.PerCore), 1.0)
	return nil
}
