package rdmap

import "sync/atomic"

// Traffic counts messages, and the octets after their DDP headers.
type Traffic struct {
	Messages uint64 `json:"messages"`
	Octets   uint64 `json:"octets"`
}

// Stats counts the messages of a stream, by [Opcode]. A message of this side is counted when all
// of it is in a batch, and its octets as they are added to the batch. A message of the peer is counted
// when it is delivered; the octets of RDMA Writes and Read Responses are counted as their segments arrive.
// Segments that were processed since the last [Stream.BatchDone] may be missing.
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

// A tally holds counts of one opcode that a goroutine has not added to the atomic counters yet,
// which cost several times as much.
type tally struct {
	op Opcode
	n  Traffic
}

// count adds to the counts of op. Counts of another opcode are added to sums first.
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

// received adds to the counts of the receiving goroutine.
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
