package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/units"
)

// A verifying holds the flags of verify.
type verifying struct {
	initiator
	nsid         uint
	jobs         int
	offset, size units.Size
	span         time.Duration
	seed         uint64
}

// verifySize is how much of a larger namespace is used by default.
const verifySize = 256 << 20

func verifyFlags(fs *flag.FlagSet) action {
	v := &verifying{}
	v.flags(fs, true)
	fs.UintVar(&v.nsid, "nsid", 1, "the `namespace`; its contents are lost")
	fs.IntVar(&v.jobs, "jobs", 4, "how many jobs, each with -depth commands outstanding")
	fs.Var(&v.offset, "offset", "`octets` in front of the first one that is used")
	fs.Var(&v.size, "size", "how many `octets` are used (default: all behind -offset, 256MiB at most)")
	fs.DurationVar(&v.span, "time", 10*time.Second, "how long to write and read, before all is read once more")
	fs.Uint64Var(&v.seed, "seed", 0, "of what is written and where; 0: a random one")
	return v.verify
}

// area checks the flags against the namespace, and returns the blocks that are used.
func (v *verifying) area(n *host.Namespace) (first, blocks int64, err error) {
	bs, octets := int64(n.BlockSize()), n.Size()
	offset, length := int64(v.offset), int64(v.size)
	if length == 0 {
		length = min(octets-offset, verifySize) / bs * bs
	}
	switch {
	case v.jobs < 1 || v.jobs > 64:
		err = usage("-jobs is %d, and not 1 to 64", v.jobs)
	case v.span < 0:
		err = usage("-time is %v, and negative", v.span)
	case offset%bs != 0 || length%bs != 0:
		err = fmt.Errorf("-offset %d or -size %d is not a multiple of the block size %d of namespace %d", offset, length, bs, v.nsid)
	case offset > octets || length > octets-offset:
		err = fmt.Errorf("-offset %d and -size %d are not within namespace %d, which has %d octets", offset, length, v.nsid, octets)
	case length/bs < int64(v.jobs*v.depth):
		err = fmt.Errorf("%d blocks of %d octets are less than one for each of %d jobs x %d commands", length/bs, bs, v.jobs, v.depth)
	}
	return offset / bs, length / bs, err
}

// verify writes and reads at random, and compares. There is one worker for each outstanding command.
// Each worker has its own blocks, so that it knows what they must contain.
func (v *verifying) verify(ctx context.Context, s *streams, args []string) (err error) {
	c, err := v.connect(ctx, args[0], s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	n, err := namespace(ctx, c, v.nsid)
	if err != nil {
		return err
	}
	first, blocks, err := v.area(n)
	if err != nil {
		return err
	}
	if v.seed == 0 {
		v.seed = rand.Uint64()
	}
	began := time.Now()
	r := &results{out: s.out}
	r.workers(ctx, n, v, first, blocks)
	fmt.Fprintf(s.out, "seed %d: %d writes, %d reads, %d octets compared, %d errors in %v\n",
		v.seed, r.writes.Load(), r.reads.Load(), r.compared.Load(), r.errors, time.Since(began).Round(time.Millisecond))
	switch {
	case r.errors > 0:
		return fmt.Errorf("%d errors", r.errors)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return nil
}

// workers runs all workers: for a time, and after a Flush once over everything that they have written.
func (r *results) workers(ctx context.Context, n *host.Namespace, v *verifying, first, blocks int64) {
	end := time.Now().Add(v.span)
	var list []*worker
	count := int64(v.jobs * v.depth)
	for i := range count {
		from, to := blocks*i/count, blocks*(i+1)/count
		list = append(list, newWorker(r, n, v.seed, first+from, int(to-from)))
	}
	each := func(f func(w *worker)) {
		var all sync.WaitGroup
		for _, w := range list {
			all.Go(func() { f(w) })
		}
		all.Wait()
	}
	each(func(w *worker) { w.run(ctx, end) })
	if err := n.Flush(ctx); err != nil && ctx.Err() == nil {
		r.failed("flush: %v", err)
	}
	each(func(w *worker) { w.readAll(ctx) })
}

// results holds the results of all workers.
type results struct {
	writes, reads, compared atomic.Int64
	tooMany                 atomic.Bool

	mu     sync.Mutex
	out    io.Writer
	errors int
}

// mostErrors is how many errors end the run: more errors would not be informative.
const mostErrors = 1000

// failed prints an error.
func (r *results) failed(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, "error:", errtext.OneLine(fmt.Sprintf(format, a...)))
	if r.errors++; r.errors >= mostErrors {
		r.tooMany.Store(true)
	}
}
