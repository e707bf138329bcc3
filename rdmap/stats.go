package rdmap

import "sync/atomic"

// Traffic counts messages, and the octets behind their DDP headers.
type Traffic struct{ Messages, Octets uint64 }

// Stats tells what a stream has moved, by [Opcode]. A message of this side counts
// when it is in the batch, one of the peer when it is delivered; the octets of RDMA
// Writes and Read Responses count as they come, segment by segment. What Segment has
// taken since the last [Stream.BatchDone] may be missing.
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

// A tally is what one goroutine has counted of one opcode, and not yet added to the
// counters that all goroutines see: those cost several times as much.
type tally struct {
	op Opcode
	n  Traffic
}

// count counts for op in the tally of what goes to sums.
func (t *tally) count(sums *[numOpcodes]traffic, op Opcode, messages, octets uint64) {
	if op != t.op {
		t.settle(sums)
		t.op = op
	}
	t.n.Messages += messages
	t.n.Octets += octets
}

func (t *tally) settle(sums *[numOpcodes]traffic) {
	if t.n == (Traffic{}) {
		return
	}
	sums[t.op].messages.Add(t.n.Messages)
	sums[t.op].octets.Add(t.n.Octets)
	t.n = Traffic{}
}

// received counts for the receiving goroutine.
func (s *Stream) received(op Opcode, messages, octets uint64) {
	s.tally.count(&s.stats.in, op, messages, octets)
}

// Stats returns the counters. It may be called at any time and from any goroutine.
func (s *Stream) Stats() Stats {
	var v Stats
	for op := range v.Out {
		v.Out[op] = s.stats.out[op].load()
		v.In[op] = s.stats.in[op].load()
	}
	return v
}
