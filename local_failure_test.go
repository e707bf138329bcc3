package iwarp

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

const localCatastrophic = "41 47 00000000 00000002 00000001 00000000 20 05 00 00"

// A hookedConn calls hook once, when so many octets of set-up have been read or written.
type hookedConn struct {
	net.Conn
	atRead, atWritten int

	mu            sync.Mutex
	read, written int
	hook          func()
}

func (c *hookedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.passed(&c.read, n, c.atRead)
	return n, err
}

func (c *hookedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.passed(&c.written, n, c.atWritten)
	return n, err
}

func (c *hookedConn) passed(sum *int, n, at int) {
	c.mu.Lock()
	*sum += n
	hook := c.hook
	if *sum != at || hook == nil {
		c.mu.Unlock()
		return
	}
	c.hook = nil
	c.mu.Unlock()
	hook()
}

// failures are what can befall a side between the last octet of the negotiation and its
// first message.
var failures = map[string]struct {
	strikes func(r *RNIC, cancel func())
	is      error
}{
	"the context ends": {func(_ *RNIC, cancel func()) { cancel() }, context.Canceled},
	"the RNIC is closed": {func(r *RNIC, _ func()) {
		go func() { _ = r.Close() }()
		for !isClosed(r) {
			time.Sleep(time.Millisecond)
		}
	}, errRNICClosed},
}

func isClosed(r *RNIC) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life == rnicClosed
}

// TestMPA2_31_37_InitiatorThatCannotGoOn: the negotiation has succeeded. The responder
// learns why there is no RTR, and then comes the end.
func TestMPA2_31_37_InitiatorThatCannotGoOn(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				ctx, cancel := context.WithCancel(testContext(t))
				defer cancel()
				a, b := transport.Pipe(transport.PipeOptions{})
				p := &peer{TB: t, c: b}
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.wantRequest(defaultRequest)
					p.replies("50 02 0004 8010 c010")
					p.wantSegment("a Terminate in place of the RTR", localCatastrophic)
					p.wantEnd("nothing follows")
					_ = b.Close()
				}()
				var qp *QP
				conn := &hookedConn{Conn: a, atRead: 24, hook: func() { f.strikes(s.rnic, cancel) }}
				_, err := s.rnic.Client(ctx, conn, &QPConfig{PD: s.pd, Setup: func(_ context.Context, made *QP) error {
					qp = made
					return made.PostSend(SendWR{ID: 1, Op: OpSend})
				}})
				<-done
				require.ErrorIs(t, err, f.is)
				var te *TerminateError
				require.ErrorAs(t, err, &te)
				require.Equal(t, transport.MPALocalCatastrophic, te.code())
				require.False(t, te.Remote)
				require.Equal(t, StateError, qp.State())
				require.Equal(t, []Status{StatusFlushed}, statuses(s.completes(qp.SendCQ(), 1)))
				synctest.Wait()
				require.Zero(t, s.rnic.used.qp)
				require.NoError(t, s.rnic.Close())
			})
		})
	}
}

// TestMPA2_31_ResponderThatCannotGoOn: one that may send before it has received anything
// tells why; one that may not only ends the connection (RFC 5044 section 7.1.2 rule 4).
func TestMPA2_31_ResponderThatCannotGoOn(t *testing.T) {
	for name, f := range failures {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := newSide(t, nil)
					ctx, cancel := context.WithCancel(testContext(t))
					defer cancel()
					a, b := transport.Pipe(transport.PipeOptions{})
					p := &peer{TB: t, c: b}
					done := make(chan struct{})
					go func() {
						defer close(done)
						p.writes(append([]byte(requestKey), hx(defaultRequest)...))
						p.wantOctets("the Reply", append([]byte(replyKey), hx("50 02 0004 8010 8010")...))
						if early {
							p.wantSegment("a Terminate", localCatastrophic)
						}
						p.wantEnd("nothing follows")
						_ = b.Close()
					}()
					conn := &hookedConn{Conn: a, atWritten: 24, hook: func() { f.strikes(s.rnic, cancel) }}
					cr, err := s.rnic.Server(ctx, conn, nil)
					require.NoError(t, err)
					_, err = cr.Accept(ctx, &QPConfig{PD: s.pd, MPA: MPAOptions{EarlyResponderSend: early}})
					<-done
					require.ErrorIs(t, err, f.is)
					var te *TerminateError
					require.ErrorAs(t, err, &te)
					require.Equal(t, transport.MPALocalCatastrophic, te.code())
					synctest.Wait()
					require.Zero(t, s.rnic.used.qp)
				})
			})
		}
	}
}
