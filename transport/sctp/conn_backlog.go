package sctp

import (
	"context"
	"net"
	"sync"
)

// A Backlog has the sessions that peers have asked a listener for and that are not
// taken yet. All methods may be called from any goroutine.
type Backlog struct {
	requests chan *Request
	closed   chan struct{}

	mu   sync.Mutex // held where requests are put in, and by Close
	over bool
}

// NewBacklog makes one for so many sessions, one at least.
func NewBacklog(n int) *Backlog {
	return &Backlog{requests: make(chan *Request, max(n, 1)), closed: make(chan struct{})}
}

// Ask reads what a peer asks for on s, as [ReadRequest] does. Where too many sessions wait
// it is refused (RFC 5043 section 6.4).
func (b *Backlog) Ask(ctx context.Context, s Stream) {
	r, err := ReadRequest(ctx, s)
	if err == nil && !b.put(r) {
		r.Close()
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

// Accept returns the next session that a peer asks for.
func (b *Backlog) Accept() (*Request, error) {
	select {
	case r := <-b.requests:
		return r, nil
	case <-b.closed:
		return nil, net.ErrClosed
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
