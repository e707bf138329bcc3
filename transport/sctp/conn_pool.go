package sctp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
)

// An Association is one that sessions share, as a back end has it.
type Association interface {
	comparable
	// Open takes a pair of streams for a session. It reports false if there is none, or
	// the association has ended.
	Open() (Stream, bool)
	// Err is why the association has ended, nil if it has not.
	Err() error
	// Retire refuses to open more sessions, and ends the association, unless a session
	// uses it. It does not wait for that.
	Retire()
	// End ends the association, with all that was made for it, and waits for that.
	End()
}

// A Pool opens sessions, all those with one peer on one association, as far as that has
// streams for them. It is the client of a back end. K is what tells peers apart. All
// methods may be called from any goroutine.
type Pool[K comparable, A Association] struct {
	associate func(ctx context.Context, to K) (A, error)

	mu     sync.Mutex
	peers  map[K]*shared[A]
	closed bool
	all    map[A]struct{}
}

// shared is the association with a peer, which may be about to be made.
type shared[A Association] struct {
	made chan struct{} // closed when a or err is there
	a    A
	err  error
}

// NewPool makes a Pool whose associations associate makes.
func NewPool[K comparable, A Association](associate func(ctx context.Context, to K) (A, error)) *Pool[K, A] {
	return &Pool[K, A]{associate: associate, peers: make(map[K]*shared[A]), all: make(map[A]struct{})}
}

// Open returns a pair of streams to a peer, for a session. ctx bounds the making of an
// association.
func (p *Pool[K, A]) Open(ctx context.Context, to K) (Stream, error) {
	last := net.ErrClosed // of one that is about to end
	for range openings {
		sh, err := p.share(ctx, to)
		if err != nil {
			return nil, err
		}
		if s, ok := sh.a.Open(); ok {
			return s, nil
		}
		p.forget(to, sh) // it has ended, or has no streams left
		if err := sh.a.Err(); err != nil {
			last = err
		}
	}
	return nil, fmt.Errorf("sctp: no association with the peer lasts: %w", last)
}

// openings is how many associations Open looks for streams on. One that was full, or about
// to end, is followed by a new one; a peer that ends them all is not asked for ever.
const openings = 8

// share returns the association with a peer, and makes it if there is none.
func (p *Pool[K, A]) share(ctx context.Context, to K) (*shared[A], error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, net.ErrClosed
	}
	sh := p.peers[to]
	if sh != nil {
		p.mu.Unlock()
		select {
		case <-sh.made:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if errors.Is(sh.err, errGivenUp) {
			return p.share(ctx, to)
		}
		return sh, sh.err
	}
	sh = &shared[A]{made: make(chan struct{})}
	p.peers[to] = sh
	p.mu.Unlock()
	a, err := p.associate(ctx, to)
	if err == nil {
		err = p.keep(a)
	} else {
		p.forget(to, sh)
	}
	sh.a, sh.err = a, err
	if ctx.Err() != nil && err != nil {
		sh.err = errGivenUp
	}
	close(sh.made)
	return sh, err
}

// errGivenUp stands for the failure of a caller whose context has ended, which says nothing of the
// peer: those that wait try for themselves.
var errGivenUp = errors.New("sctp: the association was given up")

// keep notes an association that Close has to end.
func (p *Pool[K, A]) keep(a A) error {
	p.mu.Lock()
	closed := p.closed
	for old := range p.all {
		if old.Err() != nil {
			delete(p.all, old)
		}
	}
	p.all[a] = struct{}{}
	p.mu.Unlock()
	if closed {
		a.End()
		return net.ErrClosed
	}
	return nil
}

func (p *Pool[K, A]) forget(to K, sh *shared[A]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peers[to] == sh {
		delete(p.peers, to)
	}
}

// Idled ends an association that is not in use any more. The back end calls it when the
// last session of an association has ended. Another one may have begun since: Open then no
// longer uses the association, which ends with that session.
func (p *Pool[K, A]) Idled(a A) {
	p.mu.Lock()
	for to, sh := range p.peers {
		select {
		case <-sh.made:
			if sh.a == a {
				delete(p.peers, to)
			}
		default:
		}
	}
	p.mu.Unlock()
	a.Retire()
}

// Associations lists those that were made and have not ended, and a few of the others.
func (p *Pool[K, A]) Associations() []A {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.all))
}

// Close ends all associations, and waits for it.
func (p *Pool[K, A]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var ends sync.WaitGroup
	for _, a := range p.Associations() {
		ends.Go(a.End)
	}
	ends.Wait()
}

// Decline refuses what a peer asks of an end that takes no sessions (RFC 5043 section
// 6.4). It reads as [ReadRequest] does.
func Decline(ctx context.Context, s Stream) {
	if r, err := ReadRequest(ctx, s); err == nil {
		r.Close()
	}
}
