package nvmeperf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// A command is one operation on a namespace.
type command func(ctx context.Context, n *host.Namespace, p []byte, off int64) error

func readBlock(ctx context.Context, n *host.Namespace, p []byte, off int64) error {
	_, err := n.ReadAtContext(ctx, p, off)
	return err
}

func writeBlock(ctx context.Context, n *host.Namespace, p []byte, off int64) error {
	_, err := n.WriteAtContext(ctx, p, off)
	return err
}

func writeAndFlush(ctx context.Context, n *host.Namespace, p []byte, off int64) error {
	if _, err := n.WriteAtContext(ctx, p, off); err != nil {
		return err
	}
	return n.Flush(ctx)
}

func writeThrough(ctx context.Context, n *host.Namespace, p []byte, off int64) error {
	_, err := n.WriteFUA(ctx, p, off)
	return err
}

// A client is a host with the namespace of a disk.
type client struct {
	c *host.Controller
	n *host.Namespace
}

func connect(ctx context.Context, addr string, o host.Options) (*client, error) {
	setup, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	c, err := host.Connect(setup, addr, diskNQN, &o)
	if err != nil {
		return nil, err
	}
	all, err := c.Namespaces(setup)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d namespaces", len(all))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &client{c, all[0]}, nil
}

// connect connects a host, until close.
func (s *stand) connect(addr string, o host.Options) (*client, error) {
	s.b.settle(&o)
	c, err := connect(s.b.ctx, addr, o)
	if err == nil {
		s.later(c.c.Close)
	}
	return c, err
}

// settle sets the options that all connections of hosts share. A host that has lost its target does not reconnect:
// its measurement does not count, and the target's process has ended.
func (b *bench) settle(o *host.Options) {
	o.CtrlLoss = -1
	o.QPConfig.MPA.NoCRC = !b.opts.CRC
	o.Dial = func(_ context.Context, _, addr string) (net.Conn, error) { return peer.Dial(addr, b.opts.cc) }
}

// fill writes all of the namespace.
func (c *client) fill(ctx context.Context) error {
	p := peer.SourceOf(mib)
	for off := int64(0); off < c.n.Size(); off += int64(len(p)) {
		if err := writeBlock(ctx, c.n, p, off); err != nil {
			return err
		}
	}
	return nil
}

// workers do commands of one size at random places, several at a time.
type workers struct {
	c    *client
	does command
	size int
	bufs [][]byte
	// apart gives each worker one place of its own.
	apart bool
	// times, unless nil, records how long each command took, in the order in which the commands ended.
	times []time.Duration
	mu    sync.Mutex // of times
}

func (c *client) workers(does command, size, depth int) *workers {
	w := &workers{c: c, does: does, size: size}
	for range depth {
		w.bufs = append(w.bufs, peer.SourceOf(size))
	}
	return w
}

// run does n commands.
func (w *workers) run(n int) error {
	left := int64(n)
	return w.while(func() bool { return atomic.AddInt64(&left, -1) >= 0 })
}

// while does commands while more returns true.
func (w *workers) while(more func() bool) error {
	places := int(w.c.n.Size()) / w.size
	errs := make(chan error, len(w.bufs))
	for i, p := range w.bufs {
		go func() {
			var err error
			for err == nil && more() {
				at := i
				if !w.apart {
					at = rand.IntN(places)
				}
				err = w.one(p, int64(at)*int64(w.size))
			}
			errs <- err
		}()
	}
	var failed error
	for range w.bufs {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

func (w *workers) one(p []byte, off int64) error {
	if w.times == nil {
		return w.does(context.Background(), w.c.n, p, off)
	}
	began := time.Now()
	err := w.does(context.Background(), w.c.n, p, off)
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, took)
	return err
}
