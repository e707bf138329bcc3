package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/hostile/attack"
)

// Options says which attackers to run.
type Options struct {
	Addrs  map[attack.Layer]string // where each layer listens; only these layers are attacked
	Seed   uint64
	First  uint64 // the number of the first conversation of each layer
	N      uint64 // conversations in all; 0: until the context ends
	At     attack.Target
	Parts  int           // attackers at a time; 0: 16
	Pause  time.Duration // between two conversations of an attacker
	MaxGap time.Duration // no step waits longer; 0: no limit
}

// A Tally counts the outcomes of the conversations.
type Tally struct {
	Layers map[attack.Layer]*Count
}

// A Count counts the outcomes of one layer.
type Count struct {
	Conversations uint64
	Refused       uint64 // no connection
	Ended         uint64 // by the other side, before the attacker was done
	Sent, Got     uint64 // octets
	Bent          map[string]uint64
}

// Run holds conversations until ctx ends, or until it has held Options.N of them. It returns an error only for invalid
// options.
func Run(ctx context.Context, o Options) (*Tally, error) {
	var layers []attack.Layer
	for _, l := range attack.Layers() {
		if o.Addrs[l] != "" {
			layers = append(layers, l)
		}
	}
	if len(layers) == 0 {
		return nil, errors.New("no layer has an address")
	}
	if o.Parts <= 0 {
		o.Parts = 16
	}
	r := &run{Options: o, layers: layers, tally: &Tally{Layers: make(map[attack.Layer]*Count)}}
	for _, l := range layers {
		r.tally.Layers[l] = &Count{Bent: make(map[string]uint64)}
	}
	var all sync.WaitGroup
	for range o.Parts {
		all.Go(func() { r.attacks(ctx) })
	}
	all.Wait()
	return r.tally, nil
}

// A run is the state that its attackers share.
type run struct {
	Options
	layers []attack.Layer

	mu    sync.Mutex
	next  uint64
	tally *Tally
}

// attacks holds one conversation after another.
func (r *run) attacks(ctx context.Context) {
	for ctx.Err() == nil {
		l, n, ok := r.take()
		if !ok {
			return
		}
		c := attack.Make(l, r.Seed, n, r.At)
		o, err := Play(ctx, r.Addrs[l], c, r.MaxGap)
		if err != nil {
			return
		}
		r.count(c, o)
		if r.Pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(r.Pause):
			}
		}
	}
}

// take returns the next conversation: the layers take turns.
func (r *run) take() (l attack.Layer, n uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.N > 0 && r.next == r.N {
		return "", 0, false
	}
	l = r.layers[r.next%uint64(len(r.layers))]
	n = r.First + r.next/uint64(len(r.layers))
	r.next++
	return l, n, true
}

func (r *run) count(c attack.Conversation, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tally.Layers[c.Layer]
	t.Conversations++
	t.Sent += o.Sent
	t.Got += o.Got
	if o.Refused {
		t.Refused++
	}
	if o.Ended {
		t.Ended++
	}
	for _, how := range c.Bent {
		t.Bent[how]++
	}
}

// Total returns the sum over the layers.
func (t *Tally) Total() Count {
	sum := Count{Bent: make(map[string]uint64)}
	for _, c := range t.Layers {
		sum.Conversations += c.Conversations
		sum.Refused += c.Refused
		sum.Ended += c.Ended
		sum.Sent += c.Sent
		sum.Got += c.Got
		for how, n := range c.Bent {
			sum.Bent[how] += n
		}
	}
	return sum
}

// String returns a table.
func (t *Tally) String() string {
	s := fmt.Sprintf("%-7s %13s %8s %8s %12s %12s\n", "layer", "conversations", "refused", "ended", "octets sent", "octets got")
	row := func(name string, c Count) {
		s += fmt.Sprintf("%-7s %13d %8d %8d %12d %12d\n", name, c.Conversations, c.Refused, c.Ended, c.Sent, c.Got)
	}
	for _, l := range attack.Layers() {
		if c := t.Layers[l]; c != nil {
			row(string(l), *c)
		}
	}
	row("all", t.Total())
	return s
}
