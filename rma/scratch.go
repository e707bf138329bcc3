package rma

import (
	"sync"

	"github.com/goiwarp/iwarp/regionkey"
)

// A scratch bounds the octets of memory for outstanding operations.
type scratch struct {
	mu    sync.Mutex
	limit int
	inUse int
}

func newScratch(limit int) *scratch { return &scratch{limit: limit} }

// take takes n octets. It reports false, and takes none, if fewer are left.
func (s *scratch) take(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse+n > s.limit {
		return false
	}
	s.inUse += n
	return true
}

func (s *scratch) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse -= n
}

// tight reports whether so much is in use that idle connections return their memory.
func (s *scratch) tight() bool { return s.used() > s.limit/2 }

func (s *scratch) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse
}

// prepareMemory prepares the connection to allocate memory for operations. It allocates none yet.
func (c *conn) prepareMemory() {
	c.leases = newLeases(c.pd, c.qp, c.scratch, c.maxOp+regionkey.TagSize)
	c.blobs = newBlobs(c.pd, c.scratch, c.maxOp+regionkey.TagSize)
}

// spareMemory returns the memory of the connection for use by others, if little is left and this connection has no
// outstanding operations. mu is held.
func (c *conn) spareMemory() {
	if c.server == nil || c.asServer == nil || c.leases.taken+c.blobs.taken == 0 {
		return
	}
	if !c.idle() || !c.blobs.idle() || !c.scratch.tight() {
		return
	}
	c.leases.close(atOnce)
	c.blobs.close()
	clear(c.flights)
	clear(c.requests)
	c.blobs = newBlobs(c.pd, c.scratch, c.maxOp+regionkey.TagSize)
}
