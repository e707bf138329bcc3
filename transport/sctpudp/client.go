package sctpudp

import (
	"context"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A Client opens sessions, all those with one peer on one association, as far as that has
// streams for them. All methods may be called from any goroutine.
type Client struct {
	cfg Config

	mu     sync.Mutex
	peers  map[Addr]*shared
	closed bool
	all    map[*association]struct{}
}

// shared is the association with a peer, which may be about to be made.
type shared struct {
	made chan struct{} // closed when a or err is there
	a    *association
	err  error
}

// NewClient makes a Client.
func NewClient(cfg Config) *Client {
	return &Client{cfg: cfg.withDefaults(), peers: make(map[Addr]*shared), all: make(map[*association]struct{})}
}

// Open returns a pair of streams to the peer at addr, for a session: see [Addr] for how
// an address is written. ctx bounds the making of an association.
func (c *Client) Open(ctx context.Context, addr string) (sctp.Stream, error) {
	to, err := resolve(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Err: err}
	}
	var last error
	for range openings {
		sh, err := c.share(ctx, to)
		if err != nil {
			return nil, err
		}
		if s, ok := sh.a.open(); ok {
			if err := s.attach(); err != nil {
				s.Release(false)
				return nil, err
			}
			return s, nil
		}
		c.forget(to, sh) // it has ended, or has no streams left
		last = sh.a.err()
	}
	return nil, &net.OpError{Op: "dial", Net: Network, Addr: to, Err: last}
}

// openings is how many associations Open looks for streams on. One that was full, or about
// to end, is followed by a new one; a peer that ends them all is not asked for ever.
const openings = 8

// share returns the association with a peer, and makes it if there is none.
func (c *Client) share(ctx context.Context, to Addr) (*shared, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, net.ErrClosed
	}
	sh := c.peers[to]
	if sh != nil {
		c.mu.Unlock()
		select {
		case <-sh.made:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if sh.err == nil {
			return sh, nil
		}
		return c.again(ctx, to, sh)
	}
	sh = &shared{made: make(chan struct{})}
	c.peers[to] = sh
	c.mu.Unlock()
	sh.a, sh.err = associate(ctx, c.cfg, to, c)
	if sh.err != nil {
		c.forget(to, sh)
	} else {
		sh.err = c.keep(sh.a)
	}
	close(sh.made)
	return sh, sh.err
}

// again tries anew where somebody else has failed, whose context was not ours.
func (c *Client) again(ctx context.Context, to Addr, failed *shared) (*shared, error) {
	c.forget(to, failed)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.share(ctx, to)
}

// keep notes an association that Close has to end.
func (c *Client) keep(a *association) error {
	c.mu.Lock()
	closed := c.closed
	for old := range c.all {
		if old.over() {
			delete(c.all, old)
		}
	}
	c.all[a] = struct{}{}
	c.mu.Unlock()
	if closed {
		a.e.close()
		return net.ErrClosed
	}
	return nil
}

func (c *Client) forget(to Addr, sh *shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers[to] == sh {
		delete(c.peers, to)
	}
}

// Close ends all associations, and waits for it.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := make([]*association, 0, len(c.all))
	for a := range c.all {
		all = append(all, a)
	}
	c.mu.Unlock()
	var ends sync.WaitGroup
	for _, a := range all {
		ends.Go(a.e.close)
	}
	ends.Wait()
}

// admits is always true: what a peer asks of a client is refused at once.
func (c *Client) admits() bool { return true }

// asked refuses: nobody listens here (RFC 5043 section 6.4).
func (c *Client) asked(s *stream) {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.PeerTimeout)
	defer cancel()
	if r, err := sctp.ReadRequest(ctx, s); err == nil {
		r.Close()
	}
}

// idled ends an association that nobody uses any more.
func (c *Client) idled(a *association) {
	c.mu.Lock()
	for to, sh := range c.peers {
		select {
		case <-sh.made:
			if sh.a == a {
				delete(c.peers, to)
			}
		default:
		}
	}
	c.mu.Unlock()
	a.retire()
}
