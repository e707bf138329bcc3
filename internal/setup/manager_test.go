package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// TestNothingIsPendingAfterClose: not even a Request that the application took and never answered. Otherwise a gauge
// would not return to 0.
func TestNothingIsPendingAfterClose(t *testing.T) {
	for network, addr := range networks {
		m, other := newManager(t), newManager(t)
		l, err := m.Listen(someTime(t), network, addr, ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute, MaxHalfOpen: 4})
		require.NoError(t, err)
		own, _ := local(t)
		dialled := make(chan error, 1)
		go func() { dialled <- other.Dial(someTime(t), network, l.Addr().String(), own) }()
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		require.Equal(t, 1, m.Pending(), network)
		m.Refuse(errClosed)
		m.Wait()
		m.Close()
		require.Zero(t, m.Pending(), network)
		require.Error(t, <-dialled)
		its, _ := local(t)
		require.Error(t, q.Accept(someTime(t), its))
		require.Zero(t, m.Pending(), network)
	}
}

// endTime is how long an association with a silent peer takes to end.
const endTime = 500 * time.Millisecond

type slowListener struct{ sessionListener }

func (slowListener) End() { time.Sleep(endTime) }

type slowClient struct{ sessionClient }

func (slowClient) Close() { time.Sleep(endTime) }

// TestManagerEndsItsAssociationsTogether: many listeners with silent peers take no longer than one.
func TestManagerEndsItsAssociationsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Manager{clients: map[string]sessionClient{SCTP: slowClient{}, SCTPUDP: slowClient{}}}
		for range 12 {
			m.sessions = append(m.sessions, slowListener{})
		}
		began := time.Now()
		m.Close()
		require.Equal(t, endTime, time.Since(began))
	})
}

// A wrapped is a connection of a program's own type over a closed TCP connection, on which no option can be set.
type wrapped struct {
	net.Conn
	below  net.Conn
	closed atomic.Int32
}

func (c *wrapped) NetConn() net.Conn { return c.below }

func (c *wrapped) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// TestPeerTimeoutThatCannotBeSet: the set-up fails and is counted, and its connection is closed.
func TestPeerTimeoutThatCannotBeSet(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	below, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, below.Close())
	for name, try := range map[string]func(m *Manager, c net.Conn) error{
		"Client": func(m *Manager, c net.Conn) error {
			own, _ := local(t)
			return m.Client(someTime(t), c, own)
		},
		"Server": func(m *Manager, c net.Conn) error {
			_, err := m.Server(someTime(t), c, ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute})
			return err
		},
	} {
		m := newManager(t)
		m.cfg.PeerTimeout = time.Minute
		a, b := net.Pipe()
		c := &wrapped{Conn: a, below: below}
		require.ErrorIs(t, try(m, c), net.ErrClosed, name)
		require.EqualValues(t, 1, c.closed.Load(), name)
		_, err := b.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "%s: nothing was sent", name)
		refused, failed := m.Outcomes()
		all := map[string]uint64{"Client": failed[counters.CauseConnection], "Server": refused[counters.CauseConnection]}
		require.EqualValues(t, 1, all[name], name)
		require.Zero(t, m.Pending(), name)
	}
}

// TestNoPeerTimeout: if PeerTimeout is 0 or negative, no socket option is set.
func TestNoPeerTimeout(t *testing.T) {
	m := newManager(t)
	for _, d := range []time.Duration{0, -1} {
		m.cfg.PeerTimeout = d
		require.NoError(t, m.bindPeerTimeout(new(net.TCPConn)), "which would be an error")
	}
	m.cfg.PeerTimeout = time.Minute
	require.ErrorIs(t, m.bindPeerTimeout(new(net.TCPConn)), syscall.EINVAL)
}

// A failingSource is complete at once, like a source of sessions, but its accept fails.
type failingSource struct {
	source
	closed int
}

var errTakesNothing = errors.New("takes nothing")

func (*failingSource) complete() bool           { return true }
func (*failingSource) accept() (opening, error) { return nil, errTakesNothing }

func (s *failingSource) Close() error {
	s.closed++
	return nil
}

// TestPlacesOfASourceThatFails: the listener gives the places back.
func TestPlacesOfASourceThatFails(t *testing.T) {
	l := &Listener{source: new(failingSource), ctx: someTime(t)}
	l.opening.init(2)
	for range 5 {
		_, err := l.next()
		require.ErrorIs(t, err, errTakesNothing)
	}
	require.Zero(t, l.opening.n)
}

// TestNothingBeginsAfterRefuse: a new source or connection is closed, and its place is given back.
func TestNothingBeginsAfterRefuse(t *testing.T) {
	m := newManager(t)
	m.Refuse(errClosed)
	src := new(failingSource)
	_, err := m.listen(src, ListenConfig{})
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, 1, src.closed)

	a, _ := net.Pipe()
	c, released := &wrapped{Conn: a}, 0
	_, err = m.request(&mpaOffer{Conn: c}, time.Minute, func() { released++ })
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, []int{1, 1}, []int{int(c.closed.Load()), released})
}

// TestRequestThatWasGivenUpIsNotHandedOn: its place belongs to another Request.
func TestRequestThatWasGivenUpIsNotHandedOn(t *testing.T) {
	m := newManager(t)
	l := listens(t, m, ListenConfig{MaxHalfOpen: 2})
	asks := func() (c *wrapped, q *Request) {
		a, _ := net.Pipe()
		c = &wrapped{Conn: a}
		q, err := m.request(&mpaOffer{Conn: c}, time.Minute, func() {})
		require.NoError(t, err)
		return c, q
	}
	ctx, giveUp := context.WithCancelCause(l.ctx)
	giveUp(errEvicted)
	c, q := asks()
	l.queue(ctx, q, nil)
	require.Empty(t, l.arrived)
	require.EqualValues(t, 1, c.closed.Load())
	refused, _ := m.Outcomes()
	require.EqualValues(t, 1, refused[counters.CauseEvicted])

	for range 2 {
		_, q := asks()
		l.queue(l.ctx, q, nil)
	}
	require.Len(t, l.arrived, 2)
	l.cancel(errListenerClosed)
	c, q = asks()
	l.queue(t.Context(), q, nil)
	require.EqualValues(t, 1, c.closed.Load(), "there is no place, and the listener is closed")
	l.queue(t.Context(), nil, errSetupTimeout)
	refused, _ = m.Outcomes()
	require.Zero(t, refused[counters.CauseTimeout], "what ends with the listener is not refused")
}

// TestEachSetUpIsPendingOnce: from its Request to the end of Establish. Its terms say which side is the initiator.
func TestEachSetUpIsPendingOnce(t *testing.T) {
	for network := range networks {
		m := newManager(t)
		own, asked := local(t)
		its, answered := local(t)
		establish := its.Establish
		its.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
			require.Equal(t, 1, m.Pending(), network)
			return establish(ctx, llp, terms)
		}
		require.NoError(t, betweenManagers(t, m, network, own, func(q *Request) {
			require.Equal(t, 1, m.Pending(), network)
			require.NoError(t, q.Accept(someTime(t), its), network)
		}))
		require.Zero(t, m.Pending(), network)
		require.Equal(t, []bool{true, false}, []bool{asked.terms.Initiator, answered.terms.Initiator}, network)
	}
}

// betweenManagers has another Manager dial m, and returns its error.
func betweenManagers(t *testing.T, m *Manager, network string, own *Local, answer func(q *Request)) error {
	t.Helper()
	addr := networks[network]
	if network == "tcp" {
		addr = "127.0.0.1:0"
	}
	l, err := m.Listen(someTime(t), network, addr, ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute, MaxHalfOpen: 4})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	other := newManager(t)
	dialed := make(chan error, 1)
	go func() { dialed <- other.Dial(someTime(t), network, l.Addr().String(), own) }()
	q, err := l.Accept(someTime(t))
	require.NoError(t, err)
	answer(q)
	return <-dialed
}

// TestNotOverSCTP: TLS and Trace require a byte stream.
func TestNotOverSCTP(t *testing.T) {
	m := newManager(t)
	_, err := m.Listen(someTime(t), SCTPUDP, "127.0.0.1:0", ListenConfig{TLS: new(tls.Config), MaxHalfOpen: 4})
	require.ErrorIs(t, err, errUnsupported)
	for _, own := range []*Local{{TLS: new(tls.Config)}, {Trace: io.Discard}} {
		require.ErrorIs(t, m.Dial(someTime(t), SCTPUDP, "127.0.0.1:1", own), errUnsupported)
	}
	own, _ := local(t)
	its, _ := local(t)
	its.Trace = io.Discard
	err = betweenManagers(t, m, SCTPUDP, own, func(q *Request) { require.ErrorIs(t, q.Accept(someTime(t), its), errUnsupported) })
	require.ErrorAs(t, err, new(*RejectError))
}

// TestClosedListenerOfSessionsTakesNoMore: another listener can use its port.
func TestClosedListenerOfSessionsTakesNoMore(t *testing.T) {
	m := newManager(t)
	cfg := ListenConfig{MaxHalfOpen: 4}
	l, err := m.Listen(someTime(t), SCTPUDP, "127.0.0.1:0", cfg)
	require.NoError(t, err)
	_, err = m.Listen(someTime(t), SCTPUDP, l.Addr().String(), cfg)
	require.Error(t, err, "it is taken")
	require.NoError(t, l.Close())
	again, err := m.Listen(someTime(t), SCTPUDP, l.Addr().String(), cfg)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// TestKernelWithoutSCTP: the error says what to do.
func TestKernelWithoutSCTP(t *testing.T) {
	m := newManager(t)
	err := m.kernelError(sctpkernel.ErrNoSCTP)
	require.ErrorIs(t, err, errUnsupported)
	require.ErrorIs(t, err, sctpkernel.ErrNoSCTP)
	require.ErrorContains(t, err, `network "sctp+udp" is SCTP in user space`)
	require.Equal(t, io.EOF, m.kernelError(io.EOF))
}

// TestConnectionsAreDrivenAlike: both sides use system calls on their sockets where possible, unless PlainIO is set.
func TestConnectionsAreDrivenAlike(t *testing.T) {
	for _, plain := range []bool{false, true} {
		m := newManager(t)
		m.cfg.PlainIO = plain
		own, asked := local(t)
		its, answered := local(t)
		require.NoError(t, betweenManagers(t, m, "tcp", own, func(q *Request) { require.NoError(t, q.Accept(someTime(t), its)) }))
		require.Equal(t, plain || !transport.HasRawTCP, strings.HasPrefix(answered.llp.Path(), transport.PathNetConn), answered.llp.Path())
		require.Equal(t, !transport.HasRawTCP, strings.HasPrefix(asked.llp.Path(), transport.PathNetConn), asked.llp.Path())
	}
}

// TestErrorOfEstablishIsThatOfDial: Dial does not blame a missing Reply, since the peer has answered.
func TestErrorOfEstablishIsThatOfDial(t *testing.T) {
	m := newManager(t)
	lost := &transport.Fault{Code: transport.MPAConnectionLost, Err: io.EOF}
	own, asked := local(t)
	establish := own.Establish
	own.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
		return errors.Join(establish(ctx, llp, terms), lost)
	}
	its, _ := local(t)
	err := betweenManagers(t, m, "pipe", own, func(q *Request) { require.NoError(t, q.Accept(someTime(t), its)) })
	require.ErrorIs(t, err, lost)
	require.NotContains(t, err.Error(), "MPA Reply")
	require.NotNil(t, asked.llp)
}

// TestErrorOfASetUpThatRefuseEnds: it is Config.Closed, unless the set-up succeeds or its own error already reports the
// end.
func TestErrorOfASetUpThatRefuseEnds(t *testing.T) {
	m := newManager(t)
	ctx, end := context.WithCancelCause(t.Context())
	end(errClosed)
	closed := fmt.Errorf("prepare: %w", errClosed)
	require.NoError(t, m.endedBy(ctx, nil))
	require.Equal(t, errClosed, m.endedBy(ctx, io.EOF))
	require.Equal(t, closed, m.endedBy(ctx, closed))
	require.Equal(t, io.EOF, m.endedBy(t.Context(), io.EOF))

	m.Refuse(errClosed)
	connection := fmt.Errorf("connection: %w", net.ErrClosed)
	for _, c := range []struct{ err, want error }{{nil, nil}, {io.EOF, errClosed}, {connection, connection}} {
		require.Equal(t, c.want, m.Within(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return c.err
		}))
	}
}

// A stubClient opens sessions on one stream.
type stubClient struct{ stream sctp.Stream }

func (c stubClient) Open(context.Context, string) (sctp.Stream, error) { return c.stream, nil }

func (stubClient) Close() {}

// A releasedStream counts how often it was given back.
type releasedStream struct {
	sctp.Stream
	n int
}

func (s *releasedStream) Release(bool) { s.n++ }

// TestConnectionIsNotKeptAfterAFailure: before the Request leaves, Prepare fails, a stage fails, or Refuse is called.
func TestConnectionIsNotKeptAfterAFailure(t *testing.T) {
	for name, fail := range map[string]func(m *Manager, own *Local){
		"Prepare": func(_ *Manager, own *Local) { own.Prepare = func(context.Context) error { return errLimit } },
		"stage": func(_ *Manager, own *Local) {
			own.Stages.Enter = func(_ context.Context, s Stage) error {
				if s == StageReply {
					return errLimit
				}
				return nil
			}
		},
		"Refuse": func(m *Manager, own *Local) {
			own.Prepare = func(context.Context) error {
				m.Refuse(errClosed)
				return nil
			}
		},
	} {
		m, s := newManager(t), new(releasedStream)
		m.clients = map[string]sessionClient{SCTPUDP: stubClient{stream: s}}
		own, _ := local(t)
		fail(m, own)
		require.Error(t, m.Dial(someTime(t), SCTPUDP, "127.0.0.1:1", own), name)
		require.Equal(t, 1, s.n, name)

		m = newManager(t)
		own, _ = local(t)
		fail(m, own)
		a, _ := net.Pipe()
		c := &wrapped{Conn: a}
		require.Error(t, m.Client(someTime(t), c, own), name)
		require.Positive(t, c.closed.Load(), name)
	}
	m := newManager(t)
	own, _ := local(t)
	a, peer := net.Pipe()
	require.NoError(t, peer.Close())
	c := &wrapped{Conn: a}
	require.Error(t, m.Client(someTime(t), c, own))
	require.Positive(t, c.closed.Load(), "there was no Reply")
}
