package rma

import (
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/solicit"
)

// A Solicitor is a window over the octets that this side has requested and not yet received: those that
// clients read and servers pull. Share one among the connections of a process, or of a network port.
type Solicitor struct {
	mu       sync.Mutex
	window   *solicit.Window
	waits    map[uint64]ticket // operations that wait
	due      []ticket          // granted operations whose connection was not told yet
	delivers bool              // a goroutine is in deliver
}

// A ticket is an operation that waits for a grant, or has one.
type ticket struct {
	conn  *conn
	role  op.Role
	id    op.ID
	grant uint64
}

// NewSolicitor returns a Solicitor. Config.Dispatch must be 0, because ClientConfig.Dispatch and
// ServerConfig.Dispatch set how long operations wait. Other errors are those of cfg.Check.
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

// enqueue requests a grant of n octets. If it is not granted at once, deliver tells the connection of the
// grant later.
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

// cancel removes an operation from the queue. If it was granted already, the connection is still told so.
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

// release returns a grant.
func (s *Solicitor) release(now time.Time, grant uint64, o solicit.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Release(now, grant, o)
	s.grantNext(now, 0)
}

// grantNext grants the operations that fit, and reports whether own is among them. mu is held.
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

// take returns the next grant that a connection is to be told of.
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

// deliver tells connections of their grants. The caller holds no lock: the next grant is usually for a
// connection other than the one that has returned a grant. One goroutine at a time does it for all.
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
	go func() { // grants may be returned as fast as they are delivered, and the caller has other work to do
		for t, ok := s.take(); ok; t, ok = s.take() {
			t.conn.granted(t)
		}
	}()
}

// mostDelivered is how many grants a call of deliver delivers itself.
const mostDelivered = 32

// refunds are the outcomes with which grants are returned, by op.Refund.
var refunds = [...]solicit.Outcome{
	op.RefundOK: solicit.OK, op.RefundNACK: solicit.Nack, op.RefundTimeout: solicit.Timeout, op.RefundFailed: solicit.Failed,
}
