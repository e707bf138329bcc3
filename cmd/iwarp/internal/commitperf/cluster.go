package commitperf

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// samples are times of operations.
type samples []time.Duration

func (s samples) median() time.Duration {
	slices.Sort(s)
	return s[len(s)/2].Round(100 * time.Nanosecond)
}

// ratios are of one turn each.
type ratios []float64

func (r ratios) median() float64 {
	slices.Sort(r)
	return r[len(r)/2]
}

// A cluster is a target and the connections to it, as many for either model: each has a
// slot of the target's medium and does one operation at a time.
type cluster struct {
	target, client *iwarp.RNIC
	file           *commit.File // nil: memory that takes no time to be durable
	alone          *commit.File // for the local sync
	page           []byte       // what is written there
	pd             *iwarp.PD    // of the target
	mr             *iwarp.MR
	flusher        commit.Flusher
	l              *iwarp.Listener
	push, pull     []*end
	serving        sync.WaitGroup
}

// instant makes nothing durable, at once.
type instant struct{}

func (instant) Flush(context.Context, int64, int64) error { return nil }
func (instant) Prompt(int64, int64) bool                  { return true }

func openCluster(ctx context.Context, dir, medium string, n int) (c *cluster, err error) {
	c = &cluster{page: make([]byte, slot)}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.alone, err = commit.OpenFile(filepath.Join(dir, "alone"), &commit.FileOptions{Size: slot}); err != nil {
		return c, err
	}
	if c.target, err = iwarp.Open(nil); err != nil {
		return c, err
	}
	if c.client, err = iwarp.Open(nil); err != nil {
		return c, err
	}
	if c.pd, err = c.target.AllocPD(); err != nil {
		return c, err
	}
	if err := c.register(filepath.Join(dir, "pushed"), medium, n); err != nil {
		return c, err
	}
	if c.l, err = c.target.Listen(ctx, "tcp", "127.0.0.1:0", nil); err != nil {
		return c, err
	}
	pd, err := c.client.AllocPD()
	if err != nil {
		return c, err
	}
	for i := range n {
		push, err := c.connect(ctx, pd, i, false)
		if err != nil {
			return c, err
		}
		pull, err := c.connect(ctx, pd, i, true)
		if err != nil {
			return c, err
		}
		c.push, c.pull = append(c.push, push), append(c.pull, pull)
	}
	return c, nil
}

func (c *cluster) register(path, medium string, n int) (err error) {
	const rights = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	if medium == "none" {
		c.flusher = instant{}
		c.mr, err = c.pd.RegisterMR(make([]byte, n*slot), rights, &iwarp.MROptions{Durable: c.flusher})
		return err
	}
	if c.file, err = commit.OpenFile(path, &commit.FileOptions{Size: int64(n) * slot}); err != nil {
		return err
	}
	c.flusher = c.file
	c.mr, err = c.pd.RegisterBuffer(c.file, rights, &iwarp.MROptions{Durable: c.file})
	return err
}

func (c *cluster) syncs() uint64 {
	if c.file == nil {
		return 0
	}
	return c.file.Syncs()
}

// local writes a slot and makes it durable, without a network.
func (c *cluster) local(ctx context.Context) error {
	if c.file == nil {
		return nil
	}
	if _, err := c.alone.WriteAt(c.page, 0); err != nil {
		return err
	}
	return c.alone.Flush(ctx, 0, slot)
}

// rateOf has all ends do f for so long, and counts.
func rateOf(ctx context.Context, ends []*end, span time.Duration, f func(*end, context.Context) error) (perSecond float64, ops int, err error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	for _, e := range ends {
		all.Go(func() {
			for time.Since(began) < span && failed.Load() == nil {
				if err := f(e, ctx); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), int(done.Load()), nil
}

func (c *cluster) close() {
	for _, r := range []*iwarp.RNIC{c.client, c.target} {
		if r != nil {
			_ = r.Close()
		}
	}
	c.serving.Wait()
	if c.mr != nil {
		_ = c.mr.Close()
	}
	for _, f := range []*commit.File{c.file, c.alone} {
		if f != nil {
			_ = f.Close()
		}
	}
}
