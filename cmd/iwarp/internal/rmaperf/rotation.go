package rmaperf

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma"
)

const (
	// rotatedRegions is the number of regions.
	rotatedRegions = 1000
	// readers is how many connections read them, each with one operation outstanding: no more than there are processors.
	// Otherwise reads would wait for a processor, and the manager would delay them like any other client.
	readers = 2
	// longBlock is how many times as long as another block a block with a p99 takes.
	longBlock = 10
)

// rotationRates are the numbers of Rekeys per second, each of another region.
var rotationRates = []int{1, 10, 100, 1000}

// A rotation consists of readers of many regions, and a manager that gives the regions new keys.
type rotation struct {
	b       *bench
	addr    string
	readers []*reader
	manager *end
	handles []*rma.Handle // of the manager, by region
	// begun is the epoch of each region that the manager requests; it is set before the request.
	begun   []atomic.Uint32
	next    int // region to rotate
	rotated int
	grace   time.Duration
}

// A reader reads random regions, one after the other.
type reader struct {
	*end

	r       *rotation
	random  *rand.Rand
	handles []*rma.Handle // by region
	opened  []time.Time   // when each was opened last
	fresh   time.Duration // an older Handle is opened again before it is used; 0: no Handle is
	tally   tally
}

// A tally counts the results of the operations of a reader, or of all readers.
type tally struct {
	times      []time.Duration // of operations that were done
	refused    int             // because the region has another key
	stray      int             // refused although the region does not have another key
	other      int             // operations that failed in another way
	opens      int             // to recover
	again      int             // operations to recover
	unfinished int             // recoveries that needed more than an Open and an operation
	ended      int             // connections
}

func (t *tally) add(o *tally) {
	t.times = append(t.times, o.times...)
	t.refused += o.refused
	t.stray += o.stray
	t.other += o.other
	t.opens += o.opens
	t.again += o.again
	t.unfinished += o.unfinished
	t.ended += o.ended
}

// rotation compares reads of regions while other regions get new keys with reads while none does.
func (b *bench) rotation() (err error) {
	s := &stand{b: b}
	defer func() { err = errors.Join(err, s.close()) }()
	r, err := s.rotation(rotatedRegions, 0)
	if err != nil {
		return err
	}
	var all tally
	for _, rate := range rotationRates {
		ratio, err := r.compare(rate, &all)
		if err != nil {
			return err
		}
		b.Marks.Most(fmt.Sprintf("keys rotated at %d Hz: p99 of other reads, against none", rate), ratio, 1.05, "")
	}
	b.Note("rotation: %d Rekeys, %d reads, %d refused; %d Opens and %d reads to recover", r.rotated, len(all.times), all.refused, all.opens, all.again)
	b.Marks.Most("rotation: reads refused whose region was not rotated", float64(all.stray), 0, "")
	b.Marks.Most("rotation: reads that failed with anything but AUTH", float64(all.other), 0, "")
	b.Marks.Most("rotation: connections that ended", float64(all.ended), 0, "")
	b.Marks.Most("rotation: recoveries of more than one Open and one read", float64(all.unfinished), 0, "")
	return nil
}

// compare takes blocks without and with rate Rekeys per second in turn, and returns the median of the ratios of
// their p99.
func (r *rotation) compare(rate int, all *tally) (float64, error) {
	var without, with []float64
	for range r.b.opts.Pairs {
		a, err := r.block(0, all)
		if err != nil {
			return 0, err
		}
		b, err := r.block(rate, all)
		if err != nil {
			return 0, err
		}
		without, with = append(without, a), append(with, b)
	}
	var ratios []float64
	for i := range with {
		ratios = append(ratios, with[i]/without[i])
	}
	r.b.Note("keys rotated at %d Hz: p99 of other reads %.0f us, without %.0f us", rate, stats.Median(with), stats.Median(without))
	return stats.Median(ratios), nil
}

// rotation connects all clients, and opens all regions.
func (s *stand) rotation(regions int, grace time.Duration) (*rotation, error) {
	what := s.b.sealedService(regions)
	addr, err := s.open(what)
	if err != nil {
		return nil, err
	}
	r := &rotation{b: s.b, addr: addr, begun: make([]atomic.Uint32, regions), grace: grace}
	if r.manager, err = s.end(addr, what, 1); err != nil {
		return nil, err
	}
	if r.handles, err = r.manager.openAll(regions); err != nil {
		return nil, err
	}
	for i := range r.begun {
		r.begun[i].Store(uint32(r.handles[i].Epoch()))
	}
	for i := range readers {
		d := &reader{r: r, random: rand.New(rand.NewPCG(uint64(i), 17)), opened: make([]time.Time, regions)}
		if d.end, err = s.end(addr, what, 1); err != nil {
			return nil, err
		}
		now := time.Now()
		if d.handles, err = d.openAll(regions); err != nil {
			return nil, err
		}
		for i := range d.opened {
			d.opened[i] = now
		}
		r.readers = append(r.readers, d)
	}
	return r, nil
}

// openAll opens the regions from 1 on.
func (e *end) openAll(regions int) (all []*rma.Handle, err error) {
	for i := range regions {
		h, err := e.open(uint64(i + 1))
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// block makes all readers read for a while, during which rate keys per second are rotated. It adds the
// results to all, and returns the p99.
func (r *rotation) block(rate int, all *tally) (p99 float64, err error) {
	over := make(chan struct{})
	errs := make([]error, len(r.readers)+1)
	var done sync.WaitGroup
	for i, d := range r.readers {
		d.tally = tally{times: d.tally.times[:0]}
		done.Go(func() { errs[i] = d.readUntil(over) })
	}
	if rate > 0 {
		done.Go(func() { errs[len(r.readers)] = r.rotateUntil(over, rate) })
	}
	time.Sleep(longBlock * r.b.opts.Span)
	close(over)
	done.Wait()
	var block tally
	for _, d := range r.readers {
		block.add(&d.tally)
	}
	if len(block.times) == 0 {
		errs = append(errs, errors.New("no read was done"))
	} else {
		p99 = micros(stats.Quantile(block.times, 99))
	}
	all.add(&block)
	return p99, errors.Join(errs...)
}

// rotateUntil gives one region after the other a new key.
func (r *rotation) rotateUntil(over <-chan struct{}, rate int) error {
	each := time.Second / time.Duration(rate)
	began := time.Now()
	for i := 0; ; i++ {
		// The first rotation comes after half an interval, so that a block of a second has one at 1 Hz.
		select {
		case <-over:
			return nil
		case <-time.After(time.Until(began.Add(time.Duration(i)*each + each/2))):
		}
		n := r.next
		r.next = (r.next + 1) % len(r.handles)
		h := r.handles[n]
		r.begun[n].Store(uint32(h.Epoch()) + 1)
		if err := h.Rekey(r.b.ctx, nil, r.grace); err != nil {
			return fmt.Errorf("the manager: %w", err)
		}
		r.rotated++
		if err := h.Reopen(r.b.ctx); err != nil {
			return fmt.Errorf("the manager: %w", err)
		}
	}
}

func (d *reader) readUntil(over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		n := d.random.IntN(len(d.handles))
		if d.fresh > 0 && time.Since(d.opened[n]) > d.fresh {
			if err := d.reopen(n); err != nil {
				return err
			}
		}
		if err := d.read(n); err != nil {
			return err
		}
		if d.client.Err() != nil {
			d.tally.ended++
			return nil
		}
	}
}

// reopen opens a region again. The age of the keys counts from the request for them.
func (d *reader) reopen(n int) error {
	d.opened[n] = time.Now()
	return d.handles[n].Reopen(d.ctx)
}

// read reads a region, and recovers if its key was rotated.
func (d *reader) read(n int) error {
	h, t := d.handles[n], &d.tally
	epoch := h.Epoch()
	took, failed, err := d.does(reads(h))
	switch {
	case err != nil:
		return err
	case failed == nil:
		t.times = append(t.times, took)
		return nil
	case !errors.Is(failed, rma.ErrRemoteAuth):
		t.other++
		return nil
	}
	t.refused++
	if epoch >= regionkey.Epoch(d.r.begun[n].Load()) {
		t.stray++
	}
	t.opens++
	if err := d.reopen(n); err != nil {
		return fmt.Errorf("a region is opened again: %w", err)
	}
	t.again++
	_, failed, err = d.does(reads(h))
	if failed != nil {
		t.unfinished++
	}
	return err
}
