package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rma"
)

// A source is a replica from which a Client reads.
type source struct {
	c     *Client
	addr  string
	where *locations

	mu      sync.Mutex
	conn    *reading // nil: there is none
	err     error    // why there is no connection
	dialing bool
	slow    time.Time     // of the last timeout
	tried   chan struct{} // closed when the first attempt to connect has ended
}

// A reading is a connection for Gets.
type reading struct {
	client *rma.Client
	exec   *rma.Executor
	handle *rma.Handle
	shape  Shape
}

const (
	dialTimeout = 5 * time.Second
	firstRetry  = 10 * time.Millisecond
	lastRetry   = time.Second
	maxDispatch = 10 * time.Second
	// suspectFor is how long after a timeout a replica is asked second.
	suspectFor = 100 * time.Millisecond
	// maxRestarts is how often a Get starts again at one replica because the value changes meanwhile.
	maxRestarts = 16
)

var (
	errBusy  = errors.New("kv: the key is being changed")
	errStale = errors.New("kv: the value changes too often")
	// errConnecting is why there is no connection until the first attempt has ended.
	errConnecting = errors.New("kv: it has not answered yet")
)

func newSource(c *Client, addr string) *source {
	s := &source{c: c, addr: addr, where: newLocations(c.cfg.Locations), err: errConnecting, dialing: true, tried: make(chan struct{})}
	c.tasks.Go(s.connect)
	return s
}

// get reads the value of a key.
func (s *source) get(ctx context.Context, key []byte) ([]byte, error) {
	conn, err := s.use()
	if err != nil {
		return nil, err
	}
	var l Lookup
	for range maxRestarts {
		v := ReadMore
		off, n := s.where.begin(&l, conn.shape, key)
		for v == ReadMore {
			b := make([]byte, n)
			if _, err := conn.exec.ReadAt(ctx, conn.handle, b, int64(off)); err != nil {
				s.failed(conn, err)
				return nil, fmt.Errorf("kv: replica %s: %w", s.addr, err)
			}
			v, off, n = l.Next(b)
		}
		s.where.ended(&l, v)
		switch v {
		case Found:
			return l.Value(), nil
		case Absent:
			return nil, ErrNotFound
		case Busy:
			return nil, errBusy
		case ReadMore, Stale: // again
		}
	}
	return nil, errStale
}

// getLater is like get, but waits for the first attempt to connect.
func (s *source) getLater(ctx context.Context, key []byte) ([]byte, error) {
	select {
	case <-s.tried:
		return s.get(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// use returns the connection. If there is none, one is being made.
func (s *source) use() (*reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, fmt.Errorf("kv: replica %s: %w", s.addr, s.err)
	}
	if err := s.conn.client.Err(); err != nil {
		s.drop(err)
		return nil, fmt.Errorf("kv: replica %s: %w", s.addr, err)
	}
	return s.conn, nil
}

// failed records how a read has ended.
func (s *source) failed(conn *reading, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, rma.ErrTimeout) {
		s.slow = time.Now()
	}
	if end := conn.client.Err(); end != nil && s.conn == conn {
		s.drop(end)
	}
}

// suspect reports whether the replica has recently failed to answer.
func (s *source) suspect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.slow.IsZero() && time.Since(s.slow) < suspectFor
}

// drop gives up a connection that has ended, and begins to make another one. mu is held.
func (s *source) drop(err error) {
	old := s.conn
	s.conn, s.err = nil, err
	if s.dialing || s.c.ctx.Err() != nil {
		return
	}
	s.dialing = true
	s.c.tasks.Go(func() {
		_ = old.client.Close()
		s.connect()
	})
}

// connect makes a connection, however long that takes.
func (s *source) connect() {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		conn, err := s.dial()
		s.mu.Lock()
		if errors.Is(s.err, errConnecting) {
			close(s.tried)
		}
		s.conn, s.err = conn, err
		s.dialing = err != nil
		s.mu.Unlock()
		select {
		case s.c.attempts <- struct{}{}:
		default: // Dial already has a token, or has returned
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(wait):
		case <-s.c.ctx.Done():
			return
		}
	}
}

// dial makes a connection, and opens the region.
func (s *source) dial() (*reading, error) {
	c := s.c
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	defer cancel()
	cfg := iwarp.QPConfig{PD: c.pd, Auth: c.auth, PrivateData: []byte{byte(useGets)}}
	if err := rma.Prepare(c.rnic, &cfg, 0, c.cfg.Depth); err != nil {
		return nil, err
	}
	qp, err := dial(ctx, c.rnic, c.cfg.Network, s.addr, &cfg)
	if err != nil {
		return nil, errors.Join(err, cfg.SendCQ.Close())
	}
	conn := new(reading)
	if err := conn.shape.parse(qp.PrivateData()); err != nil {
		return nil, errors.Join(err, qp.Abort(), cfg.SendCQ.Close())
	}
	queue := min(c.cfg.OpTimeout, maxDispatch) // waiting on this side says nothing about the replica
	conn.client, err = rma.NewClient(ctx, qp, &rma.ClientConfig{
		PD: c.pd, MaxOp: maxStored, MaxSlots: c.cfg.Depth, OpTimeout: c.cfg.OpTimeout, ScratchLimit: scratch, Dispatch: [2]time.Duration{queue, queue},
	})
	if err != nil {
		return nil, errors.Join(err, qp.Abort())
	}
	if err := conn.open(ctx, c); err != nil {
		return nil, errors.Join(err, conn.client.Close())
	}
	return conn, nil
}

func (r *reading) open(ctx context.Context, c *Client) (err error) {
	if r.handle, err = r.client.Open(ctx, c.region, rma.MayRead); err != nil {
		return err
	}
	if r.handle.Size() != r.shape.size() {
		return fmt.Errorf("kv: the region has %d octets, not %d as its shape has", r.handle.Size(), r.shape.size())
	}
	portal, err := r.client.Portal(c.cfg.Depth)
	if err != nil {
		return err
	}
	r.exec = rma.NewExecutor(portal)
	return nil
}

// close ends the connection.
func (s *source) close() {
	s.mu.Lock()
	conn := s.conn
	s.conn, s.err = nil, errors.New("kv: the client is closed")
	s.mu.Unlock()
	if conn != nil {
		_ = conn.client.Close()
	}
}
