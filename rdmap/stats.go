package rdmap

import "sync/atomic"

// Traffic counts messages, and the octets behind their DDP headers.
type Traffic struct{ Messages, Octets uint64 }

// Stats tells what a stream has moved, by [Opcode]. A message of this side counts
// when it is in the batch, one of the peer when it is delivered; the octets of RDMA
// Writes and Read Responses count as they come, segment by segment.
type Stats struct{ Out, In [numOpcodes]Traffic }

type traffic struct{ messages, octets atomic.Uint64 }

func (t *traffic) message(octets uint64) {
	t.messages.Add(1)
	t.octets.Add(octets)
}

func (t *traffic) load() Traffic {
	return Traffic{Messages: t.messages.Load(), Octets: t.octets.Load()}
}

type stats struct{ out, in [numOpcodes]traffic }

// Stats returns the counters. It may be called at any time and from any goroutine.
func (s *Stream) Stats() Stats {
	var v Stats
	for op := range v.Out {
		v.Out[op] = s.stats.out[op].load()
		v.In[op] = s.stats.in[op].load()
	}
	return v
}
