package sctpkernel

import (
	"context"
	"net"
	"slices"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A Client opens sessions. All sessions with one peer share an association, as long as that
// has streams for them. All methods may be called from any goroutine.
type Client struct {
	cfg  Config
	pool *sctp.Pool[string, *association]
}

// NewClient returns a Client.
func NewClient(cfg Config) *Client {
	c := &Client{cfg: cfg.withDefaults()}
	c.pool = sctp.NewPool(c.associate)
	return c
}

// Open returns a pair of streams to the peer at addr, for a session: see [Addr] for how
// an address is written. ctx bounds the establishment of an association. Its local addresses
// are only those on the routes to the peer's addresses (RFC 5043 section 7.2).
func (c *Client) Open(ctx context.Context, addr string) (sctp.Stream, error) {
	return c.pool.Open(ctx, addr)
}

// Close ends all associations, and waits until they have ended.
func (c *Client) Close() { c.pool.Close() }

func (c *Client) associate(ctx context.Context, addr string) (*association, error) {
	to, err := resolvePeer(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Err: err}
	}
	a, err := c.connect(ctx, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: Network, Addr: to, Err: err}
	}
	return a, nil
}

func (c *Client) connect(ctx context.Context, to Addr) (*association, error) {
	from, err := sources(to)
	if err != nil {
		return nil, err
	}
	sock, err := dial(c.cfg, from, to)
	if err != nil {
		return nil, err
	}
	a := start(sock, c, true)
	select {
	case <-a.up:
		return a, nil
	case <-a.done:
		return nil, a.Err()
	case <-ctx.Done():
		a.fail(context.Cause(ctx))
		<-a.done
		return nil, context.Cause(ctx)
	}
}

// sources returns the local addresses of the routes to the addresses of a peer.
func sources(to Addr) (Addr, error) {
	var from Addr
	for _, ip := range to.IPs {
		s, err := sctp.Source(ip)
		if err != nil {
			return Addr{}, err
		}
		if !slices.Contains(from.IPs, s) {
			from.IPs = append(from.IPs, s)
		}
	}
	return from, nil
}

// asked refuses the session: a Client does not listen.
func (c *Client) asked(s *stream) { sctp.Decline(context.Background(), s) }

// idled ends an association without sessions if the pool has no use for it.
func (c *Client) idled(a *association) { c.pool.Idled(a) }

func (c *Client) ended(*association) {}
