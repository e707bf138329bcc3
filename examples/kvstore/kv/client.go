package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// ErrNotFound is the error of a Get of a key that does not exist.
var ErrNotFound = errors.New("kv: no such key")

const defaultOpTimeout = time.Second

// A ClientConfig configures a Client.
type ClientConfig struct {
	Network         string
	Primary, Backup string // addresses
	Tenant          string
	Key             []byte        // of the tenant: see TenantKey
	Depth           int           // of the replicas, see Config: 64
	OpTimeout       time.Duration // for one read, after which a Get goes to the other replica: 1 s
	Locations       int           // how many locations of values the Client remembers for each replica: 0
}

// A Client is a client of a tenant. All methods may be called concurrently, from any goroutine.
type Client struct {
	cfg      ClientConfig
	rnic     *iwarp.RNIC
	pd       *iwarp.PD
	auth     *cm.Auth
	region   uint64
	sources  [2]*source    // the primary, the backup
	attempts chan struct{} // holds a token after an attempt of a source to connect
	changes  changer
	ctx      context.Context
	stop     context.CancelFunc
	tasks    sync.WaitGroup
}

// Dial connects to both replicas, and returns as soon as one of them can be read. It keeps trying to connect to the other
// one. If both first attempts fail, or ctx ends before any has succeeded, Dial fails, and says what each replica did.
func Dial(ctx context.Context, cfg *ClientConfig) (*Client, error) {
	name, err := nameOf(cfg.Tenant)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: *cfg, region: regionOf(name), attempts: make(chan struct{}, 1)}
	if c.cfg.Depth, err = depthOf(cfg.Depth); err != nil {
		return nil, err
	}
	if c.cfg.OpTimeout == 0 {
		c.cfg.OpTimeout = defaultOpTimeout
	}
	if c.auth, err = authAs(name, cfg.Key); err != nil {
		return nil, err
	}
	if c.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if c.pd, err = c.rnic.AllocPD(); err != nil {
		return nil, errors.Join(err, c.rnic.Close())
	}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.changes.init(c)
	for i, addr := range []string{cfg.Primary, cfg.Backup} {
		c.sources[i] = newSource(c, addr)
	}
	if err = c.await(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// await returns when a source can be used.
func (c *Client) await(ctx context.Context) error {
	for {
		_, err0 := c.sources[0].use()
		_, err1 := c.sources[1].use()
		switch {
		case err0 == nil || err1 == nil:
			return nil
		case !errors.Is(err0, errConnecting) && !errors.Is(err1, errConnecting):
			return errors.Join(ErrUnavailable, err0, err1)
		}
		select {
		case <-c.attempts:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err0, err1)
		}
	}
}

// Close ends the connections. No other method may be running.
func (c *Client) Close() error {
	c.stop()
	c.tasks.Wait()
	c.changes.close()
	for _, s := range c.sources {
		if s != nil {
			s.close()
		}
	}
	return c.rnic.Close()
}

// Get reads a value: the bucket of the key, and then the value, from one replica. If that fails with
// any error, or if the key is being changed there, it reads from the other replica at once. If the first
// attempt to connect to a replica is still running, Get waits for it and asks that replica last.
//
// The error matches ErrNotFound if there is no such key, and ErrUnavailable if neither replica can answer.
func (c *Client) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	which := first(key)
	if c.sources[which].suspect() {
		which = 1 - which
	}
	order := [2]*source{c.sources[which], c.sources[1-which]}
	var errs [2]error
	for i, s := range order {
		value, err := s.get(ctx, key)
		if tells(ctx, err) {
			return value, err
		}
		errs[i] = err
	}
	for i, s := range order {
		if !errors.Is(errs[i], errConnecting) {
			continue
		}
		value, err := s.getLater(ctx, key)
		if tells(ctx, err) {
			return value, err
		}
		errs[i] = err
	}
	return nil, fmt.Errorf("%w: %w; %w", ErrUnavailable, errs[0], errs[1])
}

// tells reports whether a Get ends with err instead of asking another replica.
func tells(ctx context.Context, err error) bool {
	return err == nil || errors.Is(err, ErrNotFound) || ctx.Err() != nil
}

// first returns which replica is asked first for a key, so that both have the same load.
func first(key []byte) int { return int(hashOf(key)>>32) & 1 }

// Put stores a value, and returns when it is durable at both replicas and all Gets will see it. After an
// error that matches ErrUncertain, the Put may have taken effect, or may do so later; after any other error
// it has no effect.
func (c *Client) Put(ctx context.Context, key, value []byte) error {
	if err := errors.Join(checkKey(key), checkValue(value)); err != nil {
		return err
	}
	return c.changes.do(ctx, &request{key: key, value: value})
}

// Delete removes a key, with the same guarantees as Put. It is not an error if the key does not exist.
func (c *Client) Delete(ctx context.Context, key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return c.changes.do(ctx, &request{deletes: true, key: key})
}
