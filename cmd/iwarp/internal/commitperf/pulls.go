package commitperf

import (
	"context"
	"io"
	"sync/atomic"
)

// PullSize is how many octets a pull makes durable.
const PullSize = slot

// Pulls are connections to a target with a file, which pulls from each of them one block at a time: for comparisons of
// other commands.
type Pulls struct{ c *cluster }

// OpenPulls starts the target, which puts its file in dir, and makes n connections.
func OpenPulls(ctx context.Context, dir string, n int, cc string, stderr io.Writer) (*Pulls, error) {
	c, err := openCluster(ctx, options{dir: dir, medium: fileMedium, slots: n, cc: cc}, true, stderr)
	if err != nil {
		return nil, err
	}
	return &Pulls{c}, nil
}

// Run does n pulls, one on each connection at a time.
func (p *Pulls) Run(n int) error {
	left := int64(n)
	errs := make(chan error, len(p.c.ends))
	for _, e := range p.c.ends {
		go func() {
			var err error
			for err == nil && atomic.AddInt64(&left, -1) >= 0 {
				err = e.pull()
			}
			errs <- err
		}()
	}
	var failed error
	for range p.c.ends {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

// Close ends the connections and the target.
func (p *Pulls) Close() error { return p.c.close() }
