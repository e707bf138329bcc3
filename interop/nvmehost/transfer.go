package nvmehost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// workers write and read at the same time, each in its own area.
const (
	workers  = 4
	areaSize = 4 << 20
)

// most is the longest request: one command of this length has a region of 255 pages, as Linux's own have.
const most = 1020 << 10

// transfer writes random octets in requests of many lengths, reads and compares them, and compares all of them once more over
// a new connection.
func transfer(ctx context.Context, j *Job) error {
	want := make([]byte, workers*areaSize)
	c, n, err := j.open(ctx, workers)
	if err != nil {
		return err
	}
	ended := make(chan error, workers)
	for i := range workers {
		w := worker{n: n, base: int64(i) * areaSize, want: want[i*areaSize:][:areaSize], lot: rand.New(rand.NewPCG(uint64(i), 18))}
		go func() { ended <- w.run(ctx) }()
	}
	for range workers {
		err = errors.Join(err, <-ended)
	}
	if err = errors.Join(err, n.Flush(ctx), c.Close()); err != nil {
		return err
	}
	if c, n, err = j.open(ctx, 1); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err = n.ReadAtContext(ctx, got, 0); err == nil && !bytes.Equal(got, want) {
		err = errors.New("after a new connection the data differs")
	}
	return errors.Join(err, c.Close())
}

// A worker has an area of the namespace, and a copy of its required contents.
type worker struct {
	n    *host.Namespace
	base int64
	want []byte
	lot  *rand.Rand
}

func (w *worker) run(ctx context.Context) error {
	// The area first: it may have old contents.
	if err := w.write(ctx, 0, len(w.want)); err != nil {
		return err
	}
	block := w.n.BlockSize()
	sizes := []int{block, 2 * block, 4096, 8192, 12 << 10, 64 << 10, 256 << 10, most}
	for i := range 24 {
		n := sizes[i%len(sizes)]
		off := w.lot.IntN((len(w.want)-n)/block+1) * block
		if err := w.write(ctx, off, n); err != nil {
			return err
		}
		off = w.lot.IntN((len(w.want)-n)/block+1) * block
		got := make([]byte, n)
		if _, err := w.n.ReadAtContext(ctx, got, w.base+int64(off)); err != nil {
			return fmt.Errorf("read %d octets at %d: %w", n, w.base+int64(off), err)
		}
		if !bytes.Equal(got, w.want[off:off+n]) {
			return fmt.Errorf("%d octets at %d differ", n, w.base+int64(off))
		}
	}
	return nil
}

// write writes n random octets, in commands of at most the longest request.
func (w *worker) write(ctx context.Context, off, n int) error {
	p := w.want[off : off+n]
	fill(w.lot, p)
	for at := 0; at < n; at += most {
		part := p[at:min(n, at+most)]
		if _, err := w.n.WriteAtContext(ctx, part, w.base+int64(off+at)); err != nil {
			return fmt.Errorf("write %d octets at %d: %w", len(part), w.base+int64(off+at), err)
		}
	}
	return nil
}

func fill(lot *rand.Rand, p []byte) {
	for i := range p {
		p[i] = byte(lot.Uint32())
	}
}

// steady periodically writes, reads and compares a block until the context ends, whatever happens to the connections. It
// prints "steady" after the first time, and the count at the end.
func steady(ctx context.Context, j *Job) error {
	c, n, err := j.open(ctx, 2)
	if err != nil {
		return err
	}
	w := worker{n: n, want: make([]byte, areaSize), lot: rand.New(rand.NewPCG(7, 18))}
	for i := 0; ; i++ {
		if err := w.once(ctx, n.BlockSize()); ctx.Err() != nil {
			j.say("rounds %d", i)
			return c.Close()
		} else if err != nil {
			_ = c.Close()
			return err
		}
		if i == 0 {
			j.say("steady")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *worker) once(ctx context.Context, block int) error {
	off := w.lot.IntN(len(w.want)/block) * block
	if err := w.write(ctx, off, block); err != nil {
		return err
	}
	got := make([]byte, block)
	if _, err := w.n.ReadAtContext(ctx, got, w.base+int64(off)); err != nil {
		return err
	}
	if !bytes.Equal(got, w.want[off:off+block]) {
		return fmt.Errorf("the block at %d differs", off)
	}
	return nil
}
