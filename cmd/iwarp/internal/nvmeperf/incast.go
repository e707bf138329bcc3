package nvmeperf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

const (
	// incastHosts is how many hosts write at a time, and incastDepth how many writes each has outstanding.
	incastHosts = 16
	incastDepth = 4
	// incastSize is the longest request of Linux over siw.
	incastSize = 1020 * kib
	// incastWindow is how many octets the target requests at a time.
	incastWindow = 4 * mib
	// leastShare is the smallest permitted ratio of the least that a host has written to the most.
	leastShare = 0.8
)

// A flock is a number of hosts that write, with the octets that each has written.
type flock struct {
	hosts  []*client
	octets []atomic.Int64 // of each host
}

// newFlock connects hosts with names of their own.
func newFlock(ctx context.Context, addr string, o host.Options) (f *flock, err error) {
	f = &flock{octets: make([]atomic.Int64, incastHosts)}
	for i := range incastHosts {
		o.HostNQN, o.HostID = fmt.Sprintf("nqn.2026-11.org.example:host%d", i), [16]byte{1, byte(i)}
		c, err := connect(ctx, addr, o)
		if err != nil {
			return f, err
		}
		f.hosts = append(f.hosts, c)
	}
	return f, nil
}

// write writes during span.
func (f *flock) write(span time.Duration) error {
	end := time.Now().Add(span)
	errs := make([]error, len(f.hosts))
	var all sync.WaitGroup
	for i, c := range f.hosts {
		does := func(ctx context.Context, n *host.Namespace, p []byte, off int64) error {
			err := writeBlock(ctx, n, p, off)
			if err == nil && time.Now().Before(end) { // a write that ends later does not count
				f.octets[i].Add(int64(len(p)))
			}
			return err
		}
		w := c.workers(does, incastSize, incastDepth)
		all.Go(func() { errs[i] = w.while(func() bool { return time.Now().Before(end) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// share returns the ratio of the least that a host has written to the most.
func (f *flock) share() float64 {
	least, most := f.octets[0].Load(), int64(1)
	for i := range f.hosts {
		n := f.octets[i].Load()
		least, most = min(least, n), max(most, n)
	}
	return float64(least) / float64(most)
}

func (f *flock) total() (n int64) {
	for i := range f.hosts {
		n += f.octets[i].Load()
	}
	return n
}

func (f *flock) close() error {
	errs := make([]error, len(f.hosts))
	var all sync.WaitGroup
	for i, c := range f.hosts {
		all.Go(func() { errs[i] = c.c.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// incast makes hosts write to a target that requests their data by a Solicitor.
func (b *bench) incast() error {
	return b.on(func(s *stand) error {
		a, err := s.open(&service{Disk: memoryDisk, Window: incastWindow})
		if err != nil {
			return err
		}
		var o host.Options
		b.settle(&o)
		f, err := newFlock(b.ctx, a.Addr, o)
		s.later(f.close)
		if err != nil {
			return err
		}
		if err := f.write(b.opts.Span); err != nil { // it allocates the memory of both sides
			return err
		}
		for i := range f.octets {
			f.octets[i].Store(0)
		}
		if _, err := b.do(order{Do: doClear, Service: a.Service}); err != nil {
			return err
		}
		began := time.Now()
		if err := f.write(longer * b.opts.Span * time.Duration(b.opts.Pairs) / 2); err != nil {
			return err
		}
		took := time.Since(began)
		st, err := b.do(order{Do: doStats, Service: a.Service})
		if err != nil {
			return err
		}
		n := &st.Stats
		b.Note("%d hosts write %d KiB at a time, %d under way each: %.2f GB/s, the window looked at %d times, %d queues at the end",
			incastHosts, incastSize/kib, incastDepth, float64(f.total())/took.Seconds()/1e9, n.Samples, n.Queues)
		b.judgeIncast(f, n)
		return nil
	})
}

func (b *bench) judgeIncast(f *flock, n *numbers) {
	b.Marks.Most("16 hosts write 1020 KiB: octets asked for and not come, of the window", float64(max(n.Most, n.Granted))/incastWindow, 1, "")
	b.Marks.Least("16 hosts write 1020 KiB: the host with the least, of the one with the most", f.share(), leastShare)
	lost := incastHosts*2 - n.Queues // admin and I/O queues
	b.Marks.Most("16 hosts write 1020 KiB: queues that have ended, commands that waited too long", float64(lost)+float64(n.Busy+n.Stalled), 0, "")
}

// longer is how many times as long a measurement without a comparison takes.
const longer = 10
