package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// A worker has one command outstanding at a time, on blocks that no other worker uses.
type worker struct {
	r     *results
	n     *host.Namespace
	seed  uint64
	first int64 // block
	bs    int
	rng   *rand.Rand

	// generations holds the generation that each block must have; 0: unknown.
	generations []uint32
	latest      uint32
	buf, want   []byte
}

// mostBlocks is the maximum number of blocks of a command.
const mostBlocks = 16

func newWorker(r *results, n *host.Namespace, seed uint64, first int64, blocks int) *worker {
	bs := n.BlockSize()
	return &worker{
		r: r, n: n, seed: seed, first: first, bs: bs, rng: rand.New(rand.NewPCG(seed, uint64(first))),
		generations: make([]uint32, blocks), buf: make([]byte, mostBlocks*bs), want: make([]byte, bs),
	}
}

// over reports whether it is pointless to continue.
func (w *worker) over(ctx context.Context) bool { return ctx.Err() != nil || w.r.tooMany.Load() }

// run writes and reads until a time.
func (w *worker) run(ctx context.Context, end time.Time) {
	for time.Now().Before(end) && !w.over(ctx) {
		count := 1
		if w.rng.IntN(4) == 0 {
			count = 1 + w.rng.IntN(min(mostBlocks, len(w.generations)))
		}
		from := w.rng.IntN(len(w.generations) - count + 1)
		if w.rng.IntN(2) == 0 {
			w.write(ctx, from, count)
		} else {
			w.read(ctx, from, count)
		}
	}
}

// readAll reads all blocks.
func (w *worker) readAll(ctx context.Context) {
	for from := 0; from < len(w.generations) && !w.over(ctx); from += mostBlocks {
		w.read(ctx, from, min(mostBlocks, len(w.generations)-from))
	}
}

// offset returns the offset of a block in octets.
func (w *worker) offset(i int) int64 { return (w.first + int64(i)) * int64(w.bs) }

func (w *worker) stamp(i int, generation uint32) stamp {
	return stamp{seed: w.seed, block: uint64(w.first) + uint64(i), generation: uint64(generation)}
}

// write gives blocks a new generation.
func (w *worker) write(ctx context.Context, from, count int) {
	w.latest++
	p := w.buf[:count*w.bs]
	for i := range count {
		w.stamp(from+i, w.latest).fill(p[i*w.bs:][:w.bs])
		w.generations[from+i] = 0
	}
	w.r.writes.Add(1)
	if _, err := w.n.WriteAtContext(ctx, p, w.offset(from)); err != nil {
		if ctx.Err() == nil {
			w.r.failed("write of %d octets at %d: %v", len(p), w.offset(from), err)
		}
		return
	}
	for i := range count {
		w.generations[from+i] = w.latest
	}
}

// read compares blocks with what was written.
func (w *worker) read(ctx context.Context, from, count int) {
	p := w.buf[:count*w.bs]
	clear(p)
	w.r.reads.Add(1)
	if _, err := w.n.ReadAtContext(ctx, p, w.offset(from)); err != nil {
		if ctx.Err() == nil {
			w.r.failed("read of %d octets at %d: %v", len(p), w.offset(from), err)
		}
		return
	}
	for i := range count {
		generation := w.generations[from+i]
		if generation == 0 {
			continue
		}
		w.r.compared.Add(int64(w.bs))
		if err := w.stamp(from+i, generation).check(p[i*w.bs:][:w.bs], w.want); err != nil {
			w.r.failed("block %d, at %d: %v", w.first+int64(from+i), w.offset(from+i), err)
		}
	}
}
