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

// An Association is an association of a back end, which sessions share.
type Association interface {
	comparable
	// Open returns a free pair of streams for a session. It reports false if there is none,
	// or the association has ended.
	Open() (Stream, bool)
	// Err returns why the association has ended, or nil if it has not.
	Err() error
	// Retire refuses to open more sessions, and ends the association, unless a session
	// uses it. It does not wait for the end.
	Retire()
	// End ends the association, with all that was made for it, and waits for the end.
	End()
}

// A Pool opens sessions. All sessions with one peer share an association, as long as that
// has streams for them. It is the client of a back end. K distinguishes peers. All
// methods may be called from any goroutine.
type Pool[K comparable, A Association] struct {
	associate func(ctx context.Context, to K) (A, error)

	mu     sync.Mutex
	peers  map[K]*shared[A]
	closed bool
	all    map[A]struct{}
}

// shared is the association with a peer, which may still be being established.
type shared[A Association] struct {
	made chan struct{} // closed when a or err is set
	a    A
	err  error
}

// NewPool returns a Pool whose associations are established by associate.
func NewPool[K comparable, A Association](associate func(ctx context.Context, to K) (A, error)) *Pool[K, A] {
	return &Pool[K, A]{associate: associate, peers: make(map[K]*shared[A]), all: make(map[A]struct{})}
}

// Open returns a pair of streams to a peer, for a session. ctx bounds the establishment of
// an association.
func (p *Pool[K, A]) Open(ctx context.Context, to K) (Stream, error) {
	last := net.ErrClosed // for an association that is about to end
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

// openings is how many associations Open tries. An association that is full, or about to end,
// is followed by a new one; the limit is for a peer that ends them all.
const openings = 8

// share returns the association with a peer, and establishes it if there is none.
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

// errGivenUp stands for the failure of a caller whose context has ended, which says nothing about
// the peer: other callers that wait then try for themselves.
var errGivenUp = errors.New("sctp: the association was given up")

// keep records an association that Close must end.
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

// Idled ends an association that is no longer in use. The back end calls it when the last
// session of an association has ended. If another session has begun since, Open no longer
// uses the association, which ends with that session.
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

// Associations returns the established associations, and perhaps a few that have ended.
func (p *Pool[K, A]) Associations() []A {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.all))
}

// Close ends all associations, and waits until they have ended.
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

// Decline refuses a session that a peer requests from an end that accepts none (RFC 5043
// section 6.4). It reads as [ReadRequest] does.
func Decline(ctx context.Context, s Stream) {
	if r, err := ReadRequest(ctx, s); err == nil {
		r.Close()
	}
}
