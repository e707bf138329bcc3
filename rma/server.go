package rma

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

// A Server has regions, and serves them on any number of connections.
type Server struct {
	cfg       ServerConfig
	err       error // of the configuration
	solicitor *Solicitor
	scratch   *scratch
	audit     *audit

	mu      sync.Mutex // a leaf
	regions map[uint64]*Region
	cache   *regionkey.Cache
	last    uint64 // number of a connection, or of a region
	queue   int    // writes that wait for the window
	conns   map[*conn]struct{}
	ended   op.ServerStats // of the connections that are gone
}

// NewServer returns a Server. If its configuration is not valid, Register, Serve and a NewClient with it
// return the error.
func NewServer(cfg *ServerConfig) *Server {
	if cfg == nil {
		cfg = new(ServerConfig)
	}
	s := &Server{regions: make(map[uint64]*Region), conns: make(map[*conn]struct{})}
	s.cfg, s.err = cfg.withDefaults()
	s.solicitor = s.cfg.Solicitor
	if s.solicitor == nil {
		s.solicitor = defaultSolicitor()
	}
	s.scratch = newScratch(s.cfg.ScratchLimit)
	s.audit = newAudit(s.cfg.Logger)
	s.cache = regionkey.NewCache(max(s.cfg.CacheSize, 0))
	return s
}

// Register makes a region of the octets of b, which clients open by its number. Use NewMemory for
// octets in memory. The goroutines of connections call methods of b, several at the same time, and wait
// for them, until Region.Close has returned. Register fails if there is a region of that
// number, or if there are ServerConfig.MaxRegions.
func (s *Server) Register(id uint64, b iwarp.Buffer, opt *RegionOptions) (*Region, error) {
	if s.err != nil {
		return nil, s.err
	}
	if b == nil {
		return nil, errors.New("rma: a region without a Buffer")
	}
	r, err := newRegion(s, id, b, opt)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.regions[id] != nil:
		return nil, fmt.Errorf("rma: there is a region %#x already", id)
	case len(s.regions) >= s.cfg.MaxRegions:
		return nil, fmt.Errorf("rma: there are %d regions, the limit", len(s.regions))
	}
	s.last++
	r.serial = s.last
	s.regions[id] = r
	return r, nil
}

// region finds a region; nil: there is none. A nil Server has none.
func (s *Server) region(id uint64) *Region {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.regions[id]
}

func (s *Server) remove(r *Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.regions[r.id] == r {
		delete(s.regions, r.id)
	}
}

// join adds a connection, and returns its number.
func (s *Server) join(c *conn) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.conns[c] = struct{}{}
	return s.last
}

// leave takes a connection away that is gone.
func (s *Server) leave(c *conn, stats op.ServerStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.DropConn(c.id)
	delete(s.conns, c)
	s.ended = sum(s.ended, stats)
}

// enqueue counts a write that waits for the window. It reports false if too many do.
func (s *Server) enqueue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue >= s.cfg.QueueDepth {
		return false
	}
	s.queue++
	return true
}

func (s *Server) dequeue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue--
}

func (s *Server) cached(k regionkey.CacheKey) *regionkey.Sealer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.Get(k)
}

func (s *Server) keep(k regionkey.CacheKey, sealer *regionkey.Sealer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.Put(k, sealer)
}

func (s *Server) dropBefore(region uint64, oldest regionkey.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.DropBefore(region, oldest)
}

func (s *Server) dropRegion(region uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.DropRegion(region)
}

// AuditLog returns the newest records of the audit log, the oldest one first.
func (s *Server) AuditLog() []AuditEvent { return s.audit.list() }

// Serve serves the regions on the connection of qp, which has accepted it, until the peer ends it or
// ctx ends; then it finishes the requests that it has begun. The QP and its CQ belong to Serve from
// then on: see Prepare for what they need. Serve returns nil after a graceful end, and else why the
// connection has ended. It ends a QP that does not fit, too. If the configuration of the Server is not
// valid the QP is as before.
func (s *Server) Serve(ctx context.Context, qp *iwarp.QP) error {
	if s.err != nil {
		return s.err
	}
	c, err := newConn(qp, serverSettings(s))
	if err != nil {
		_ = qp.Abort()
		_ = qp.RecvCQ().Close()
		if errors.Is(err, errClosed) {
			return nil // it had ended before, gracefully
		}
		return err
	}
	return c.serve(ctx)
}
