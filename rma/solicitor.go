package rma

import (
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/solicit"
)

// A Solicitor is a window over the octets that this side has asked for and that have not come: what
// clients read, and what servers pull. Share one among the connections of a process, or of a
// network port.
type Solicitor struct {
	mu       sync.Mutex
	window   *solicit.Window
	waits    map[uint64]ticket // operations that wait
	due      []ticket          // granted operations whose connection was not told yet
	delivers bool              // a goroutine is telling them
}

// A ticket is an operation that waits for room, or has got it.
type ticket struct {
	conn  *conn
	role  op.Role
	id    op.ID
	grant uint64
}

// NewSolicitor returns a Solicitor. Config.Dispatch must be 0, since how long operations wait is for
// the Client and the Server to say. Other errors are those of cfg.Check.
func NewSolicitor(cfg solicit.Config) (*Solicitor, error) {
	if cfg.Dispatch != [2]time.Duration{} {
		return nil, errors.New("rma: the dispatch timeouts are those of the ClientConfig and the ServerConfig")
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return newSolicitor(cfg), nil
}

func newSolicitor(cfg solicit.Config) *Solicitor {
	return &Solicitor{window: solicit.New(cfg, time.Now()), waits: make(map[uint64]ticket)}
}

// Stats returns the counters of the window.
func (s *Solicitor) Stats() solicit.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.Stats()
}

// enqueue asks for room for n octets. If there is none yet the connection learns of the grant from
// deliver.
func (s *Solicitor) enqueue(now time.Time, t ticket, class solicit.Class, n int64) (grant uint64, granted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err = s.window.Enqueue(now, class, n)
	if err != nil {
		return 0, false, err
	}
	t.grant = grant
	s.waits[grant] = t
	return grant, s.grantNext(now, grant), nil
}

// cancel takes an operation out of the queue. If it was granted, its grant still comes.
func (s *Solicitor) cancel(now time.Time, grant uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window.Cancel(now, grant) {
		delete(s.waits, grant)
		s.grantNext(now, 0)
	}
}

// hold keeps the octets of an operation that has timed out.
func (s *Solicitor) hold(now time.Time, grant uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Hold(now, grant)
}

// release gives a grant back.
func (s *Solicitor) release(now time.Time, grant uint64, o solicit.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Release(now, grant, o)
	s.grantNext(now, 0)
}

// grantNext grants what fits, and reports whether that of the caller is among it. mu is held.
func (s *Solicitor) grantNext(now time.Time, own uint64) (granted bool) {
	for {
		g, ok := s.window.Next(now)
		if !ok {
			return granted
		}
		if g.ID == own {
			granted = true
		} else {
			s.due = append(s.due, s.waits[g.ID])
		}
		delete(s.waits, g.ID)
	}
}

// take returns the next grant that a connection is to learn of.
func (s *Solicitor) take() (t ticket, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivers = len(s.due) > 0; !s.delivers {
		return ticket{}, false
	}
	t = s.due[0]
	copy(s.due, s.due[1:])
	s.due[len(s.due)-1] = ticket{}
	s.due = s.due[:len(s.due)-1]
	return t, true
}

// deliver tells connections of their grants. The caller holds no lock: the next grant is usually for
// another connection than that which has given its own back. One goroutine does it for all.
func (s *Solicitor) deliver() {
	s.mu.Lock()
	idle := s.delivers || len(s.due) == 0
	s.delivers = s.delivers || !idle
	s.mu.Unlock()
	if idle {
		return
	}
	for range mostDelivered {
		t, ok := s.take()
		if !ok {
			return
		}
		t.conn.granted(t)
	}
	go func() { // others may give back as fast as one can tell, and the caller has work of its own
		for t, ok := s.take(); ok; t, ok = s.take() {
			t.conn.granted(t)
		}
	}()
}

// mostDelivered is how many grants a call of deliver tells at most.
const mostDelivered = 32

// refunds are how grants are given back, by op.Refund.
var refunds = [...]solicit.Outcome{
	op.RefundOK: solicit.OK, op.RefundNACK: solicit.Nack, op.RefundTimeout: solicit.Timeout, op.RefundFailed: solicit.Failed,
}
