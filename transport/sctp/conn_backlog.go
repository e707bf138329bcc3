package sctp

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A Backlog has the sessions that peers have asked a listener for and that are not
// taken yet. All methods may be called from any goroutine.
type Backlog struct {
	requests chan *Request
	closed   chan struct{}
	failed   chan struct{} // has an element where an outage has begun that Accept has not told of
	refused  func(remote net.Addr, cause error)

	mu     sync.Mutex // held where requests are put in, and by Close
	over   bool
	outage error
}

// NewBacklog makes one for so many sessions, one at least. refused is told of sessions that peers have begun to ask for and that
// Accept will not return, until Close is called; it may be nil.
func NewBacklog(n int, refused func(remote net.Addr, cause error)) *Backlog {
	if refused == nil {
		refused = func(net.Addr, error) {}
	}
	return &Backlog{requests: make(chan *Request, max(n, 1)), closed: make(chan struct{}), failed: make(chan struct{}, 1), refused: refused}
}

// Why a session is refused before the ULP learns of it.
var (
	// ErrGivenUp says that the peer has not asked for its session when a younger one needed its place.
	ErrGivenUp = errors.New("sctp: given up for a younger session, since too many had not been asked for")

	errTooMany = errors.New("sctp: as many sessions wait for an answer as may")
)

// Ask reads what a peer asks for on s, as [ReadRequest] does. Where too many sessions wait
// it is refused (RFC 5043 section 6.4).
func (b *Backlog) Ask(ctx context.Context, s Stream) {
	remote := s.RemoteAddr()
	r, err := ReadRequest(ctx, s)
	if err == nil && !b.put(r) {
		r.Close()
		err = errTooMany
	}
	if err != nil && !b.Closed() && !errors.Is(err, context.Canceled) { // else it is the end of the listener
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

// SetOutage is for the back end: err is why no new association of a peer can be taken now, nil if they can.
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

// Outage is why no new association of a peer can be taken now, nil if they can. Sessions may come on those that there are.
func (b *Backlog) Outage() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outage
}

// Accept returns the next session that a peer asks for. Where an outage begins it returns the reason once, unless the outage has
// ended by then: see [Backlog.Outage]. After Close the error matches net.ErrClosed.
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

// Closed tells whether Close was called.
func (b *Backlog) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}
