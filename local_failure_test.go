package iwarp_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

const localCatastrophic = "41 47 00000000 00000002 00000001 00000000 20 05 00 00"

// A hookedConn calls hook once, after so many octets of set-up have been read or written.
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

// failures are failures of one side between the last octet of the negotiation and its first message.
var failures = map[string]struct {
	strikes func(r *iwarp.RNIC, cancel func())
	is      error
}{
	"the context ends": {func(_ *iwarp.RNIC, cancel func()) { cancel() }, context.Canceled},
	"the RNIC is closed": {func(r *iwarp.RNIC, _ func()) {
		go func() { _ = r.Close() }()
		for !r.IsClosed() {
			time.Sleep(time.Millisecond)
		}
	}, iwarp.ErrRNICClosed},
}

// TestMPA2_31_37_InitiatorThatCannotGoOn: the negotiation has succeeded. The responder first learns why there is no RTR,
// and then the connection ends.
func TestMPA2_31_37_InitiatorThatCannotGoOn(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				ctx, cancel := context.WithCancel(testContext(t))
				defer cancel()
				a, b := transport.Pipe(transport.PipeOptions{})
				p := &wiretest.Peer{TB: t, Conn: b}
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.WantRequest(wiretest.DefaultRequest)
					p.Reply("50 02 0004 8010 c010")
					p.WantSegment("a Terminate in place of the RTR", localCatastrophic)
					p.WantEOF("nothing follows")
					_ = b.Close()
				}()
				var qp *iwarp.QP
				conn := &hookedConn{Conn: a, atRead: 24, hook: func() { f.strikes(s.rnic, cancel) }}
				_, err := s.rnic.Client(ctx, conn, &iwarp.QPConfig{PD: s.pd, Setup: func(_ context.Context, made *iwarp.QP) error {
					qp = made
					return made.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend})
				}})
				<-done
				require.ErrorIs(t, err, f.is)
				var te *iwarp.TerminateError
				require.ErrorAs(t, err, &te)
				require.Equal(t, transport.MPALocalCatastrophic, codeOf(te))
				require.False(t, te.Remote)
				require.Equal(t, iwarp.StateError, qp.State())
				require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(s.completes(qp.SendCQ(), 1)))
				synctest.Wait()
				require.Zero(t, s.rnic.InUse().MaxQP)
				require.NoError(t, s.rnic.Close())
			})
		})
	}
}

// TestMPA2_31_ResponderThatCannotGoOn: a responder that may send before it has received anything reports why. A
// responder that may not only ends the connection (RFC 5044 section 7.1.2 rule 4).
func TestMPA2_31_ResponderThatCannotGoOn(t *testing.T) {
	for name, f := range failures {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := newSide(t, nil)
					ctx, cancel := context.WithCancel(testContext(t))
					defer cancel()
					a, b := transport.Pipe(transport.PipeOptions{})
					p := &wiretest.Peer{TB: t, Conn: b}
					done := make(chan struct{})
					go func() {
						defer close(done)
						p.Write(append([]byte(wiretest.RequestKey), wiretest.Hex(wiretest.DefaultRequest)...))
						p.WantReply("the Reply", "50 02 0004 8010 8010")
						if early {
							p.WantSegment("a Terminate", localCatastrophic)
						}
						p.WantEOF("nothing follows")
						_ = b.Close()
					}()
					conn := &hookedConn{Conn: a, atWritten: 24, hook: func() { f.strikes(s.rnic, cancel) }}
					cr, err := s.rnic.Server(ctx, conn, nil)
					require.NoError(t, err)
					_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, MPA: iwarp.MPAOptions{EarlyResponderSend: early}})
					<-done
					require.ErrorIs(t, err, f.is)
					var te *iwarp.TerminateError
					require.ErrorAs(t, err, &te)
					require.Equal(t, transport.MPALocalCatastrophic, codeOf(te))
					synctest.Wait()
					require.Zero(t, s.rnic.InUse().MaxQP)
				})
			})
		}
	}
}
