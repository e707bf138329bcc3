package nvmeperf

import (
	"math/rand/v2"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// transfers do commands of one size at random places, several at a time, without a goroutine for each.
type transfers struct {
	n    *host.Namespace
	size int
	all  []*host.Transfer

	mu    sync.Mutex
	left  int // to be started
	under int // outstanding
	err   error
	over  chan struct{} // holds an element when a run has ended
}

func (c *client) transfers(write bool, size, depth int) *transfers {
	t := &transfers{n: c.n, size: size, over: make(chan struct{}, 1)}
	for range depth {
		t.all = append(t.all, &host.Transfer{Write: write, P: peer.SourceOf(size), Done: t.ended})
	}
	return t
}

// run does n commands.
func (t *transfers) run(n int) error {
	first := t.all[:min(n, len(t.all))]
	for _, one := range first {
		t.place(one)
	}
	t.left, t.under, t.err = n-len(first), len(first), nil
	started, err := t.n.Start(first...)
	t.mu.Lock()
	if err != nil {
		t.err = err
		t.under -= len(first) - started
	}
	idle := t.under == 0
	t.mu.Unlock()
	if !idle || started == len(first) {
		<-t.over
	}
	return t.err
}

func (t *transfers) place(one *host.Transfer) {
	one.Off = int64(rand.IntN(int(t.n.Size())/t.size)) * int64(t.size)
}

// ended starts the next command instead of one that has ended.
func (t *transfers) ended(one *host.Transfer) {
	if t.goesOn(one.Err) {
		t.place(one)
		_, err := t.n.Start(one)
		if err == nil {
			return
		}
		t.mu.Lock()
		t.err = err
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under--; t.under == 0 {
		t.over <- struct{}{}
	}
}

// goesOn reports whether another command is to be done.
func (t *transfers) goesOn(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = err
	}
	if t.err != nil || t.left == 0 {
		return false
	}
	t.left--
	return true
}
