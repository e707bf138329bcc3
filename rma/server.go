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

// A Server holds regions and serves them on any number of connections.
type Server struct {
	cfg       ServerConfig
	err       error // of the configuration
	solicitor *Solicitor
	scratch   *scratch
	audit     *audit

	mu      sync.Mutex // a leaf
	regions map[uint64]*Region
	cache   *regionkey.Cache
	last    uint64 // the last number given to a connection or a region
	queue   int    // writes that wait for the window
	conns   map[*conn]struct{}
	ended   op.ServerStats // of the connections that have ended
}

// NewServer returns a Server. If cfg is not valid, the error is returned by Register, by Serve, and by
// NewClient with that Server.
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

// Register makes a region of the octets of b, which clients open by the number id. Use NewMemory for
// octets in memory. Until Region.Close has returned, the goroutines of connections call the methods of b,
// several at the same time, and wait for them. Register fails if the number is in use, or if there are
// ServerConfig.MaxRegions regions already.
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

// region returns the region with a number, or nil. A nil Server has no regions.
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

// leave removes a connection that has ended.
func (s *Server) leave(c *conn, stats op.ServerStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.DropConn(c.id)
	delete(s.conns, c)
	s.ended = sum(s.ended, stats)
}

// enqueue counts a write that waits for the window. It reports false if too many writes wait already.
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

// AuditLog returns the newest records of the audit log, oldest first.
func (s *Server) AuditLog() []AuditEvent { return s.audit.list() }

// Serve serves the regions on the connection of qp, which this side has accepted, until the peer ends
// the connection or ctx ends; in the latter case it finishes the requests that it has begun. The QP and
// its CQ belong to Serve: see Prepare for what they need. Serve returns nil after a graceful end, and
// otherwise the reason why the connection ended. It also ends a QP that is not suitable. If the
// configuration of the Server is not valid, the QP remains unchanged.
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
