package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
)

// A round is the life of a few connections.
type round struct {
	m      *monitor
	seed   uint64
	hosts  [2]*host
	pairs  []*pair
	failed chan error // capacity 1: the first error of a helper before the end
	ending atomic.Bool
	ctx    context.Context // ends when the connections have ended
	cancel context.CancelFunc
	all    sync.WaitGroup
	seeds  uint64 // given to goroutines
}

// setUpTime bounds the set-up of all connections of a round.
const setUpTime = 30 * time.Second

// runRound makes connections, uses them for a time and ends them.
func runRound(m *monitor, o options, seed uint64, length time.Duration) error {
	r := &round{m: m, seed: seed, failed: make(chan error, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	defer r.cancel()
	if err := r.setUp(o); err != nil {
		return err
	}
	r.start(o)
	select {
	case <-time.After(length):
	case err := <-r.failed:
		return newFinding(err.Error(), r.pairs)
	case what := <-m.found:
		return newFinding(what, r.pairs)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.end()
	}()
	select {
	case <-ended:
		return nil
	case what := <-m.found:
		return newFinding(what, r.pairs)
	}
}

func (r *round) setUp(o options) error {
	ctx, cancel := context.WithTimeout(r.ctx, setUpTime)
	defer cancel()
	for i, name := range []string{"client", "server"} {
		h, err := newHost(name, o.pairs)
		if err != nil {
			return err
		}
		r.hosts[i] = h
	}
	for i := range o.pairs {
		p, err := connect(ctx, o, r.hosts[0], r.hosts[1], i)
		if err != nil {
			return err
		}
		r.pairs = append(r.pairs, p)
	}
	return nil
}

// random returns the source of the choices of one more goroutine.
func (r *round) random() *rand.Rand {
	r.seeds++
	return rand.New(rand.NewPCG(r.seed, r.seeds))
}

// start starts the goroutines: those of the helpers in turn on all ends, and one for each
// completion queue.
func (r *round) start(o options) {
	for i := range o.goroutines {
		p := r.pairs[i%len(r.pairs)]
		e := []*end{p.client, p.server}[i/len(r.pairs)%2]
		h, err := newHelper(r, e, i)
		if err != nil {
			r.fail(err)
			return
		}
		r.all.Go(h.work)
	}
	senders, receivers := make(map[*iwarp.CQ]*poster), make(map[*iwarp.CQ]*consumer)
	for _, p := range r.pairs {
		for _, e := range []*end{p.client, p.server} {
			q := senders[e.qp.SendCQ()]
			if q == nil {
				q = newPoster(r, e)
				senders[e.qp.SendCQ()] = q
			}
			q.ends = append(q.ends, e)
			c := receivers[e.qp.RecvCQ()]
			if c == nil {
				c = newConsumer(r, e)
				receivers[e.qp.RecvCQ()] = c
			}
			c.add(e)
		}
	}
	for _, p := range r.pairs {
		random := r.random()
		r.all.Go(func() { p.changePatterns(r, random) })
	}
	for _, q := range senders {
		r.all.Go(q.work)
	}
	for _, c := range receivers {
		r.all.Go(c.work)
	}
}

// fail ends the round because of an error.
func (r *round) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// expected reports whether a goroutine continues after err. An error of the connections is
// expected only once they end.
func (r *round) expected(ctx context.Context, what string, err error) (goOn bool) {
	switch {
	case err == nil:
		return !r.ending.Load()
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return !r.ending.Load()
	case !r.ending.Load():
		r.fail(fmt.Errorf("%s: %w", what, err))
	}
	return false
}

// end ends the connections below the goroutines that use them, and returns when all is over.
func (r *round) end() {
	random := r.random()
	r.ending.Store(true)
	u := r.m.user("the end")
	defer u.leave()
	var all sync.WaitGroup
	for _, p := range r.pairs {
		how := random.IntN(6)
		all.Go(func() { p.end(r.m, how) })
	}
	all.Wait()
	for _, p := range r.pairs {
		for _, e := range []*end{p.client, p.server} {
			_ = u.call(context.Background(), e.name+" ends", false, func() error {
				<-e.qp.Done()
				return nil
			})
		}
	}
	r.cancel()
	_ = u.call(context.Background(), "all goroutines return", false, func() error {
		r.all.Wait()
		return nil
	})
	for _, h := range r.hosts {
		_ = u.call(context.Background(), h.name+": RNIC.Close", false, h.rnic.Close)
	}
}

// end ends the connection in one of six ways. Close waits for the peer's end for longer
// than the limit if it must, so both ends are closed.
func (p *pair) end(m *monitor, how int) {
	u := m.user(p.name)
	defer u.leave()
	first, second := p.client, p.server
	if how%2 == 1 {
		first, second = second, first
	}
	closing := func(e *end) {
		// The queue pair ends in time, or the monitor reports it.
		_ = u.call(context.Background(), e.name+": Close", false, e.qp.Close)
	}
	switch how / 2 {
	case 0:
		_ = u.call(context.Background(), first.name+": Abort", false, first.qp.Abort)
	case 1:
		closing(first)
	case 2:
		_ = u.call(context.Background(), first.name+": Terminate", false, first.qp.Terminate)
	}
	closing(second)
}
