package rdmap

import "sync/atomic"

// Traffic counts messages, and octets of payload.
type Traffic struct{ Messages, Octets uint64 }

// Stats tells what a stream has moved, by [Opcode]. Of what it receives, octets are
// counted per segment before they are placed, messages when they are delivered; of
// what it sends, both when the message is in the batch.
type Stats struct{ Out, In [numOpcodes]Traffic }

type traffic struct{ messages, octets atomic.Uint64 }

func (t *traffic) load() Traffic {
	return Traffic{Messages: t.messages.Load(), Octets: t.octets.Load()}
}

func (t *traffic) message(octets uint64) {
	t.messages.Add(1)
	t.octets.Add(octets)
}

type stats struct{ out, in [numOpcodes]traffic }

// Stats may be called at any time and from any goroutine.
func (s *Stream) Stats() Stats {
	var v Stats
	for i := range v.Out {
		v.Out[i] = s.stats.out[i].load()
		v.In[i] = s.stats.in[i].load()
	}
	return v
}
