package sctpudp

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A Client opens sessions. All sessions with one peer share an association, as long as that
// has streams for them. All methods may be called from any goroutine.
type Client struct {
	cfg  Config
	pool *sctp.Pool[Addr, *association]
}

// NewClient returns a Client.
func NewClient(cfg Config) *Client {
	c := &Client{cfg: cfg.withDefaults()}
	c.pool = sctp.NewPool(func(ctx context.Context, to Addr) (*association, error) {
		return associate(ctx, c.cfg, to, c)
	})
	return c
}

// Open returns a pair of streams to the peer at addr, for a session: see [Addr] for how
// an address is written. ctx bounds the establishment of an association.
func (c *Client) Open(ctx context.Context, addr string) (sctp.Stream, error) {
	to, err := resolve(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Err: err}
	}
	return c.pool.Open(ctx, to)
}

// Close ends all associations, and waits until they have ended.
func (c *Client) Close() { c.pool.Close() }

// admits always returns a turn: a session that a peer requests from a client is refused at once.
func (c *Client) admits() *turn {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.PeerTimeout)
	return &turn{ctx, cancel}
}

func (c *Client) admitted() *turn { return c.admits() }

// asked refuses the session: a Client does not listen.
func (c *Client) asked(ctx context.Context, s *stream) { sctp.Decline(ctx, s) }

// idled ends an association without sessions if the pool has no use for it.
func (c *Client) idled(a *association) { c.pool.Idled(a) }
