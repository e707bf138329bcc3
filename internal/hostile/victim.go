package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/hostile/attack"
)

// A victim is everything that is attacked, and its honest peers.
type victim struct {
	rnic    *iwarp.RNIC
	pd      *iwarp.PD // of the attackers
	own     *iwarp.PD // of the honest peers
	arena   *arena
	plain   *plain
	friends *friends
	addrs   map[attack.Layer]string
	told    attack.Target
	records []func() int // how many records of attacks are kept, which is bounded

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	closers []func() error // in the reverse order
}

// newVictim listens, and connects the honest peers.
func newVictim(ctx context.Context) (v *victim, err error) {
	v = &victim{addrs: make(map[attack.Layer]string)}
	v.ctx, v.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	v.rnic, err = iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxQP: 1024, MaxHalfOpen: 256}})
	if err != nil {
		return nil, err
	}
	v.closers = append(v.closers, v.rnic.Close)
	for _, pd := range []**iwarp.PD{&v.pd, &v.own} {
		if *pd, err = v.rnic.AllocPD(); err != nil {
			return nil, err
		}
	}
	if v.friends, err = newFriends(v); err != nil {
		return nil, err
	}
	if v.plain, err = newPlain(v); err != nil {
		return nil, err
	}
	if err = v.serve(); err != nil {
		return nil, err
	}
	if err = v.friends.connect(v.addrs[attack.TCP]); err != nil {
		return nil, fmt.Errorf("the honest peers: %w", err)
	}
	v.arena, err = newArena(v)
	if err != nil {
		return nil, err
	}
	v.told = v.arena.told()
	v.told.NQN = subsystem
	return v, nil
}

// close ends everything.
func (v *victim) close() {
	v.cancel()
	if v.friends != nil {
		v.friends.close()
	}
	for i := len(v.closers) - 1; i >= 0; i-- {
		_ = v.closers[i]()
	}
	v.running.Wait()
}

// listens takes the connections of a network for some layers.
func (v *victim) listens(network string, lc *iwarp.ListenConfig, handle func(*iwarp.ConnRequest), layers ...attack.Layer) error {
	l, err := v.rnic.Listen(v.ctx, network, "127.0.0.1:0", lc)
	if err != nil {
		return fmt.Errorf("%s: %w", layers[0], err)
	}
	v.closers = append(v.closers, l.Close)
	for _, layer := range layers {
		v.addrs[layer] = l.Addr().String()
	}
	v.running.Go(func() {
		for v.ctx.Err() == nil {
			if err := l.Serve(v.ctx, handle); errors.Is(err, net.ErrClosed) {
				return
			}
		}
	})
	return nil
}

// suffers runs a quiet phase, an attack, and a phase after which all resources must be free again.
func (v *victim) suffers(ctx context.Context, o options) (*findings, error) {
	f := &findings{}
	if err := v.warms(ctx, o); err != nil {
		return nil, fmt.Errorf("the first attackers: %w", err)
	}
	f.heapBefore = v.heap()
	f.quiet = v.friends.work(v.ctx, o.quiet)

	attacked, stop := context.WithTimeout(ctx, o.time)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		var err error
		f.attackers, err = v.attacked(attacked, o)
		stop()
		ended <- err
	}()
	visits := v.friends.visits(attacked, v.addrs[attack.TCP])
	f.attacked = v.friends.work(attacked, o.time)
	if err := <-ended; err != nil {
		return nil, fmt.Errorf("the attackers: %w", err)
	}
	f.visits = <-visits
	f.heapAfter = v.heapBack(ctx, f.heapBefore, o.heapTime)
	f.after = v.friends.work(v.ctx, o.quiet/4)
	f.changed = v.arena.changed()
	f.wrong = v.friends.wrong()
	f.events = v.friends.counts()
	f.dropped = v.rnic.EventsDropped()
	f.accepted = v.plain.accepted.Load()
	return f, nil
}

// warms runs a few attackers for a short time, so that the buffers that the library keeps exist, and waits
// until the timers of the connections that they have left have run.
func (v *victim) warms(ctx context.Context, o options) error {
	o.time, o.n = max(o.quiet/4, o.warm), 0
	o.seed++
	attacked, stop := context.WithTimeout(ctx, o.time)
	defer stop()
	if _, err := v.attacked(attacked, o); err != nil {
		return err
	}
	v.friends.work(ctx, o.settle)
	for range quarantine { // an RNIC remembers so many STags that were freed
		for _, pd := range []*iwarp.PD{v.own, v.friends.pd} {
			mr, err := pd.RegisterMR(make([]byte, 1), 0, nil)
			if err != nil {
				return err
			}
			if err := mr.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// quarantine is the size of the quarantine of package stag.
const quarantine = 1 << 16
