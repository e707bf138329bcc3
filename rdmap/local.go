package rdmap

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// doLocal performs a request that sends nothing. It takes effect before any later request is
// processed, and does not wait for the completion of earlier requests
// (draft-hilland-rddp-verbs section 8.2.2.1). If it fails, the stream ends.
func (s *Stream) doLocal(r *Request) error {
	var err error
	switch r.Kind {
	case KindRegister:
		err = s.config.Table.Enable(s.config.Scope, r.Enable)
	case KindBind:
		on := &r.Spans[0]
		err = s.config.Table.Bind(s.config.Scope, &s.windows, r.Enable, on.Region, on.Off)
	default:
		if v := s.config.Table.InvalidateSTag(s.config.Scope, r.Invalidate, false); v != stag.None {
			err = transport.Faultf(transport.RDMAPLocalCatastrophic, "%v: %v", r.Invalidate, v)
		}
	}
	if err != nil {
		return s.failRequest(r, StatusBind, err)
	}
	r.done = true
	s.fill.next++
	return nil
}

// flushFirst reports whether the batch must be flushed before the next request. An
// invalidation waits until the region is not pinned, and the batch may pin it, or may pin
// another region whose invalidation on another stream waits for this flush.
func (s *Stream) flushFirst() bool {
	f := &s.fill
	return len(f.pinned) > 0 && f.next < f.posted && (*f.ring.At(f.next)).Kind == KindInvalidate
}

// Windows returns the memory windows that are bound to the stream. The owner invalidates
// them when the stream has ended.
func (s *Stream) Windows() *stag.Windows { return &s.windows }
