package sctp

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A Backlog holds the sessions that peers have requested from a listener and that Accept has
// not returned yet. All methods may be called from any goroutine.
type Backlog struct {
	requests chan *Request
	closed   chan struct{}
	failed   chan struct{} // has an element if Accept has yet to report an outage that has begun
	refused  func(remote net.Addr, cause error)

	mu     sync.Mutex // held to add requests, and by Close
	over   bool
	outage error
}

// NewBacklog returns a Backlog for n sessions, at least one. Until Close is called, refused is called for each session that
// a peer has begun to request and that Accept will not return; it may be nil.
func NewBacklog(n int, refused func(remote net.Addr, cause error)) *Backlog {
	if refused == nil {
		refused = func(net.Addr, error) {}
	}
	return &Backlog{requests: make(chan *Request, max(n, 1)), closed: make(chan struct{}), failed: make(chan struct{}, 1), refused: refused}
}

// Why a session is refused before the ULP learns of it.
var (
	// ErrGivenUp says that the peer had not requested its session when a younger one needed its place.
	ErrGivenUp = errors.New("sctp: given up for a younger session, since too many had not been asked for")

	errTooMany = errors.New("sctp: as many sessions wait for an answer as may")
)

// Ask reads a peer's request on s, as [ReadRequest] does. If too many sessions wait, it
// refuses the request (RFC 5043 section 6.4).
func (b *Backlog) Ask(ctx context.Context, s Stream) {
	remote := s.RemoteAddr()
	r, err := ReadRequest(ctx, s)
	if err == nil && !b.put(r) {
		r.Close()
		err = errTooMany
	}
	if err != nil && !b.Closed() && !errors.Is(err, context.Canceled) { // otherwise the listener ends
		b.refused(remote, err)
	}
}

func (b *Backlog) put(r *Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	select {
	case b.requests <- r:
		return true
	default:
		return false
	}
}

// SetOutage is for the back end: err says why no new association of a peer can be accepted now, or is nil if they can.
func (b *Backlog) SetOutage(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.outage == nil {
		select {
		case b.failed <- struct{}{}:
		default:
		}
	}
	b.outage = err
}

// Outage returns why no new association of a peer can be accepted now, or nil if they can. Sessions may arrive on existing ones.
func (b *Backlog) Outage() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outage
}

// Accept returns the next session that a peer requests. When an outage begins, Accept returns the reason once, unless the outage
// has ended by then: see [Backlog.Outage]. After Close the error matches net.ErrClosed.
func (b *Backlog) Accept() (*Request, error) {
	for {
		select {
		case r := <-b.requests:
			return r, nil
		case <-b.closed:
			return nil, net.ErrClosed
		case <-b.failed:
			if err := b.Outage(); err != nil {
				return nil, err
			}
		}
	}
}

// Close refuses the sessions that Accept has not returned, and those still to come. It
// reports false if it was called before.
func (b *Backlog) Close() bool {
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		return false
	}
	b.over = true
	close(b.closed)
	b.mu.Unlock()
	for {
		select {
		case r := <-b.requests:
			r.Close()
		default:
			return true
		}
	}
}

// Closed reports whether Close was called.
func (b *Backlog) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}
