package rdmap

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// doLocal does a request that sends nothing, whose turn has come: it is in force
// before any later request is looked at, and waits for no earlier one
// (draft-hilland-rddp-verbs section 8.2.2.1). One that is refused ends the stream.
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

// flushFirst reports whether the next request must wait for the flush of what is in
// the batch: an invalidation waits until nothing pins the region, and the batch does, or
// pins another, for the end of which another invalidation waits.
func (s *Stream) flushFirst() bool {
	f := &s.fill
	return len(f.pinned) > 0 && f.next < f.posted && (*f.ring.At(f.next)).Kind == KindInvalidate
}

// Windows returns the memory windows that are bound to the stream. Its owner
// invalidates them when the stream has ended: no peer can use them any more.
func (s *Stream) Windows() *stag.Windows { return &s.windows }
