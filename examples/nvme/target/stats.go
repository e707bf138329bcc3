package target

import "sync/atomic"

// Stats count what a target has done.
type Stats struct {
	Connections uint64 // accepted
	Rejected    uint64 // connections
	Refused     uint64 // Connect commands
	Commands    uint64 // received
	Busy        uint64 // commands that were answered with 0x022
	Stalled     uint64 // queues that were closed because they made no progress
	Fetched     uint64 // octets of RDMA Reads
	Sent        uint64 // octets of RDMA Writes

	Queues     int    // current connections
	Running    int    // commands that are not answered yet
	Memory     int64  // octets of buffers in use
	MostMemory int64  // the maximum of Memory so far
	Idle       int64  // octets of buffers that are kept for later
	Waits      uint64 // commands that have waited for a buffer
}

type counters struct {
	connections, rejected, refused, commands, busy, stalled, fetched, sent, waits atomic.Uint64
}

// Stats returns the current values of the counters.
func (t *Target) Stats() Stats {
	c := &t.stats
	s := Stats{
		Connections: c.connections.Load(), Rejected: c.rejected.Load(), Refused: c.refused.Load(),
		Commands: c.commands.Load(), Busy: c.busy.Load(), Stalled: c.stalled.Load(),
		Fetched: c.fetched.Load(), Sent: c.sent.Load(), Waits: c.waits.Load(),
		Queues: t.connections(), Running: int(t.tasks.Load()),
	}
	b := &t.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Memory, s.MostMemory, s.Idle = b.used, b.most, t.memory.idle()
	return s
}
