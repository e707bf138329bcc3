package rma

import (
	"maps"
	"slices"

	"github.com/goiwarp/iwarp/rma/internal/op"
)

// ServerStats are the counters of a Server over all its connections.
type ServerStats struct {
	Regions       int
	Connections   int
	ScratchInUse  int // octets of memory for outstanding operations
	CachedSealers int // cached traffic keys

	AuthFailures uint64 // requests with a wrong key or without the right, and data that are not those that were sealed
	Nacks        uint64 // requests that were refused (NACK)
	Expired      uint64 // writes that were pulled and not copied in time
	Late         uint64 // messages and data that arrived too late, and were dropped
	LateCommits  uint64 // copies that ended so late that the client may have given up

	Audited, Unrecorded uint64 // events of the audit log, and those of them that have no record
}

// Stats returns the counters since NewServer, including those of connections that have ended.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	all := ServerStats{Regions: len(s.regions), Connections: len(s.conns), CachedSealers: s.cache.Len()}
	n := s.ended
	live := slices.AppendSeq(make([]*conn, 0, len(s.conns)), maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range live {
		n = sum(n, c.serverStats())
	}
	all.AuthFailures, all.Nacks, all.Expired, all.Late, all.LateCommits = n.AuthFailures, n.Nacks, n.Expired, n.Late, n.LateCommits
	all.ScratchInUse = s.scratch.used()
	all.Audited, all.Unrecorded = s.audit.counts()
	return all
}

func sum(a, b op.ServerStats) op.ServerStats {
	a.AuthFailures += b.AuthFailures
	a.Nacks += b.Nacks
	a.Expired += b.Expired
	a.Late += b.Late
	a.LateCommits += b.LateCommits
	return a
}

// serverStats returns the counters of the connection, even if it has ended: a call of Stats that began
// earlier has read the counters of the Server without them.
func (c *conn) serverStats() op.ServerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asServer == nil {
		return op.ServerStats{}
	}
	return c.asServer.Stats()
}

// ClientStats are the counters of a Client.
type ClientStats struct {
	Outcomes         [Outcomes]uint64 // ended operations by Outcome, including Open, Reopen and Rekey
	Timeouts         uint64           // operations with the Outcome Timeout
	DispatchTimeouts uint64           // operations with the Outcome DispatchTimeout
	Late             uint64           // answers that came after the operation had ended
	LatePulls        uint64           // late answers that requested the octets of a write, and were refused
}

// Stats returns the counters. It may be called after Close.
func (cl *Client) Stats() ClientStats {
	c := cl.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.asClient.Stats()
	return ClientStats{
		Outcomes: s.Outcomes, Timeouts: s.Outcomes[op.Timeout], DispatchTimeouts: s.Outcomes[op.DispatchTimeout], Late: s.Late, LatePulls: s.LatePulls,
	}
}
