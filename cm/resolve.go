package cm

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/transport"
)

// maxNames is how many names a resolver remembers. Beyond that it forgets some, so that an infinite
// sequence does not need unbounded memory.
const maxNames = 1 << 14

// A resolver looks up host names, each once, for all targets.
type resolver struct {
	net   *net.Resolver
	slots semaphore
	ctx   context.Context // of all lookups
	all   *sync.WaitGroup // their goroutines

	mu    sync.Mutex
	known map[hostName]*lookup
	over  list.List // of hostName: the names whose lookups have ended, in the order of the ends
}

type hostName struct{ network, host string } // network is ip, ip4 or ip6

// A lookup is the lookup of one name.
type lookup struct {
	begun chan struct{} // closed when there is room for it
	done  chan struct{} // closed when it has ended
	addrs []netip.Addr
	err   error

	// Guarded by the resolver's mutex.
	waiting int
	cancel  context.CancelFunc // set when it has begun
	place   *list.Element      // in resolver.over
}

// ended reports whether the lookup has ended.
func (l *lookup) ended() bool { return closed.Is(l.done) }

// resolve returns the lookup of a name when it has ended. begin is called before anything is sent
// for it. The result of a failed lookup stays valid, except for an attempt whose previous attempt
// got it too: last is the lookup of the previous attempt. The clock stops until the lookup begins.
func (r *resolver) resolve(ctx context.Context, clock *timeLimit, n hostName, last *lookup, begin func() error) (*lookup, error) {
	r.mu.Lock()
	l := r.known[n]
	if l == nil || l == last && l.ended() && l.err != nil {
		r.drop(n, l)
		r.forget()
		l = &lookup{begun: make(chan struct{}), done: make(chan struct{})}
		r.known[n] = l
	}
	l.waiting++
	r.mu.Unlock()
	err := r.await(ctx, clock, n, l, begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.waiting--; l.waiting == 0 && !l.ended() {
		if l.cancel != nil {
			l.cancel()
		}
		if r.known[n] == l {
			r.drop(n, l)
		}
	}
	return l, err
}

// await waits for a lookup, and begins it when there is room.
func (r *resolver) await(ctx context.Context, clock *timeLimit, n hostName, l *lookup, begin func() error) error {
	slots, begun := r.slots, l.begun
	if slots == nil {
		slots = make(semaphore, 1)
	}
	select {
	case <-begun:
		slots, begun = nil, nil
	default:
		if err := begin(); err != nil {
			return err
		}
		clock.pause()
		defer clock.resume()
	}
	for {
		select {
		case <-l.done:
			return l.err
		case <-ctx.Done():
			return causeOf(ctx)
		case <-begun:
			slots, begun = nil, nil
			clock.resume()
		case slots <- struct{}{}:
			if !r.begin(n, l, slots) {
				slots.give()
			}
			slots, begun = nil, nil
			clock.resume()
		}
	}
}

// begin begins a lookup for which there is a slot. It reports false if the lookup has begun already.
func (r *resolver) begin(n hostName, l *lookup, slots semaphore) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.cancel != nil {
		return false
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(r.ctx)
	close(l.begun)
	r.all.Go(func() {
		defer l.cancel()
		addrs, err := r.net.LookupNetIP(ctx, n.network, n.host)
		slots.give()
		if err == nil && len(addrs) == 0 {
			err = fmt.Errorf("lookup %s: no address", n.host)
		}
		for i := range addrs {
			addrs[i] = addrs[i].Unmap()
		}
		r.ended(n, l, addrs, transport.Exhausted(err))
	})
	return true
}

// ended ends a lookup.
func (r *resolver) ended(n hostName, l *lookup, addrs []netip.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[n] == l {
		l.place = r.over.PushBack(n)
	}
	l.addrs, l.err = addrs, err
	close(l.done)
}

// forget makes room for one more name; r.mu is locked.
func (r *resolver) forget() {
	for len(r.known) >= maxNames && r.over.Len() > 0 {
		n := r.over.Front().Value.(hostName)
		r.drop(n, r.known[n])
	}
}

// drop forgets a lookup, which may be nil; r.mu is locked.
func (r *resolver) drop(n hostName, l *lookup) {
	if l == nil {
		return
	}
	delete(r.known, n)
	if l.place != nil {
		r.over.Remove(l.place)
	}
}
