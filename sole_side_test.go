package iwarp

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A soleSide makes QPs over LLPs in memory that can be armed, so that waiters receive for
// themselves in virtual time. All queues of its QPs have one CQ.
type soleSide struct {
	*testing.T
	rnic *RNIC
	pd   *PD
	cq   *CQ
}

func newSoleSide(t *testing.T) *soleSide {
	s := &soleSide{T: t, rnic: opens(t)}
	s.rnic.sweeper = qpconn.NewSweeper(func(d time.Duration, look func()) error {
		time.AfterFunc(d, look)
		return nil
	})
	var err error
	s.pd, err = s.rnic.AllocPD()
	require.NoError(t, err)
	s.cq, err = s.rnic.CreateCQ(64)
	require.NoError(t, err)
	return s
}

// opens opens an RNIC for the duration of the test.
func opens(t *testing.T) *RNIC {
	t.Helper()
	r, err := Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(), "the RNIC closes") })
	return r
}

// noQP is the QP whose work a test pretends to complete.
var noQP = &QP{}

// creates makes a QP with one receive, and starts gives it a connection.
func (s *soleSide) creates() *QP {
	s.Helper()
	qp, err := s.rnic.newQP(&QPConfig{PD: s.pd, SendCQ: s.cq, RecvCQ: s.cq})
	require.NoError(s, err)
	require.NoError(s, qp.PostRecv(RecvWR{}))
	return qp
}

func (s *soleSide) starts(qp *QP) *armedLLP {
	s.Helper()
	f := &armedLLP{}
	f.changed.L = &f.mu
	require.NoError(s, qp.establish(s.Context(), f, &mpa.Terms{IRD: 1, ORD: 1}, 0))
	return f
}

func (s *soleSide) establishes() (*QP, *armedLLP) {
	s.Helper()
	qp := s.creates()
	return qp, s.starts(qp)
}

// listed returns how many waiters sleep for a token.
func (s *soleSide) listed() int {
	s.cq.mu.Lock()
	defer s.cq.mu.Unlock()
	return len(s.cq.waiters)
}

// An armedLLP is an LLP to which the test sends Sends.
type armedLLP struct {
	mu      sync.Mutex
	changed sync.Cond
	ready   func() // not nil: armed
	sends   []byte // their MSNs
	seq     uint64
	woken   bool
	waits   bool // a goroutine waits in Receive
	closed  error
}

// arrives sends the Send with this MSN.
func (f *armedLLP) arrives(msn byte) { f.change(func() { f.sends = append(f.sends, msn) }) }

func (f *armedLLP) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.changed.Broadcast()
	f.due()
}

// due calls ready if there is something to receive. mu is held.
func (f *armedLLP) due() {
	if f.ready != nil && (len(f.sends) > 0 || f.closed != nil) {
		go f.ready()
		f.ready = nil
	}
}

func (f *armedLLP) parked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

func (f *armedLLP) Receive(p transport.Placer, wait transport.Wait) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.closed != nil:
			return f.closed
		case len(f.sends) > 0:
			msn, seq := f.sends[0], f.seq
			f.sends = f.sends[1:]
			f.seq++
			f.mu.Unlock()
			defer f.mu.Lock()
			return p.Segment(seq, []byte{0x41, 0x43, 13: msn, 17: 0})
		case wait == transport.NoWait:
			return transport.ErrAgain
		case f.woken:
			f.woken = false
			return transport.ErrWoken
		}
		f.waits = true
		f.changed.Wait()
		f.waits = false
	}
}

func (f *armedLLP) Arm(ready func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return false
	}
	f.ready = ready
	f.due()
	return true
}

func (f *armedLLP) Disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = nil
}

func (f *armedLLP) Close() error {
	f.Abort(errors.New("closed"))
	return nil
}

func (f *armedLLP) Abort(cause error) {
	f.change(func() { f.closed = errors.Join(cause, net.ErrClosed) })
}

func (f *armedLLP) Wake()                              { f.change(func() { f.woken = true }) }
func (f *armedLLP) Discard() error                     { return net.ErrClosed }
func (f *armedLLP) MaxULPDU() int                      { return 1400 }
func (f *armedLLP) Append([]byte, [][]byte, bool) bool { return true }
func (f *armedLLP) Flush(bool) error                   { return nil }
func (f *armedLLP) Stage()                             {}
func (f *armedLLP) CloseSend() error                   { return nil }
func (f *armedLLP) Caps() transport.Caps               { return transport.Caps{} }
func (f *armedLLP) Path() string                       { return "memory" }
func (f *armedLLP) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (f *armedLLP) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
