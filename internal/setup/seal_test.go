package setup

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/sealtest"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// seals is a ListenConfig.Seal that keeps the Sealers it has made.
type seals struct {
	made     []*sealtest.Sealer
	arrivals []Arrival
	err      error
	none     bool
}

func (s *seals) seal(_ context.Context, a Arrival) (Sealer, error) {
	s.arrivals = append(s.arrivals, a)
	if s.err != nil || s.none {
		return nil, s.err
	}
	s.made = append(s.made, &sealtest.Sealer{Key: "k"})
	return s.made[len(s.made)-1], nil
}

// closed returns how many Sealers were closed, and requires that none was closed twice.
func (s *seals) closed(t *testing.T) (n int) {
	t.Helper()
	for _, m := range s.made {
		require.LessOrEqual(t, m.Closed, 1)
		n += m.Closed
	}
	return n
}

// sealedLocal returns a local with a Seal for an initiator.
func sealedLocal(t *testing.T, key string) (*Local, *result) {
	own, got := local(t)
	own.Seal, own.PrivateData = &sealtest.Sealer{Key: key}, []byte("hello")
	return own, got
}

// networks are the networks that a test can use here.
var networks = map[string]string{"pipe": "", SCTPUDP: "127.0.0.1:0"}

// between dials a listener that has Seal, and passes the listener's Request, if there is one, to answer.
func between(t *testing.T, network string, s *seals, own *Local, answer func(q *Request)) error {
	t.Helper()
	m := newManager(t)
	l, err := m.Listen(someTime(t), network, networks[network], ListenConfig{
		SetupTimeout: 5 * time.Second, ProgressTimeout: 2 * time.Second, MaxHalfOpen: 8, Seal: s.seal,
	})
	require.NoError(t, err)
	answered := make(chan struct{})
	ctx, stop := context.WithCancel(someTime(t))
	go func() {
		defer close(answered)
		if q, err := l.Accept(ctx); err == nil {
			answer(q)
		}
	}()
	err = m.Dial(someTime(t), network, l.Addr().String(), own)
	if err != nil && len(s.made) > 0 && s.made[0].Opened > 0 && len(s.made[0].Causes) > 0 && !errors.Is(s.made[0].Causes[0], transport.ErrRejected) {
		stop() // there is no Request to answer
	}
	<-answered
	stop()
	require.NoError(t, l.Close())
	// The initiator may know of a refusal before the listener has put everything away.
	require.Eventually(t, func() bool { return m.Pending() == 0 }, 5*time.Second, time.Millisecond)
	return err
}

func TestCM_6_7_SealedSetUpOverEachNetwork(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			s := new(seals)
			own, got := sealedLocal(t, "k")
			theirs, gotToo := local(t)
			theirs.PrivateData = []byte("world")
			require.NoError(t, between(t, network, s, own, func(q *Request) {
				require.Equal(t, "hello", string(q.PrivateData()))
				require.Same(t, s.made[0], q.Sealer())
				require.NoError(t, q.Accept(someTime(t), theirs))
			}))
			require.Equal(t, "world", string(got.terms.PeerPrivateData))
			require.Equal(t, "hello", string(gotToo.terms.PeerPrivateData))
			require.Zero(t, s.closed(t), "it is the connection's now")
			a := s.arrivals[0]
			require.Equal(t, a.Local.Network(), a.Network)
			require.NotNil(t, a.Remote)
			require.Equal(t, 508, a.MaxPrivate)
		})
	}
}

func TestCM_35_RefusedRequestIsNotHandedOn(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			s := new(seals)
			own, got := sealedLocal(t, "another key")
			err := between(t, network, s, own, func(*Request) { t.Error("it is handed on") })
			require.ErrorIs(t, err, sealtest.ErrRefused)
			var rej *RejectError
			require.False(t, errors.As(err, &rej))
			require.Nil(t, got.llp)
			require.Equal(t, []error{sealtest.ErrForged}, s.made[0].Causes)
			require.Equal(t, 1, s.closed(t))
		})
	}
}

func TestSealedRejection(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			s := new(seals)
			own, _ := sealedLocal(t, "k")
			var rej *RejectError
			require.ErrorAs(t, between(t, network, s, own, func(q *Request) {
				require.NoError(t, q.Reject(-1, 3, []byte("no room")))
			}), &rej)
			require.Equal(t, "no room", string(rej.PrivateData))
			require.Equal(t, 3, rej.ORD)
			require.Equal(t, []error{transport.ErrRejected}, s.made[0].Causes)
			require.Equal(t, 1, s.closed(t))
		})
	}
}

// TestCM_42_PlainInitiatorIsRefused: a plain initiator has no Seal.
func TestCM_42_PlainInitiatorIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newManager(t), new(seals)
		var log bytes.Buffer
		m.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		l := listens(t, m, ListenConfig{Seal: s.seal})
		p := calls(t, l, request(plain))
		p.wants(append(frame(replyKey, "60 01 0014"), append(make([]byte, 19), 3)...))
		p.wantsEnd("one write, and then the end")
		synctest.Wait()
		require.Empty(t, l.arrived, "it never reaches the application")
		require.Zero(t, m.Pending())
		require.Equal(t, 1, s.closed(t))
		require.Empty(t, log.String(), "what authenticates logs it itself")
	})
}

func TestSealThatCannotBeHad(t *testing.T) {
	for want, s := range map[error]*seals{errClosed: {err: errClosed}, errNoSealer: {none: true}} {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t)
			l := listens(t, m, ListenConfig{Seal: s.seal})
			calls(t, l, request(plain)).wantsEnd("without a reply")
			synctest.Wait()
			require.Empty(t, l.arrived)

			a, b := transport.Pipe(transport.PipeOptions{})
			go func() { _, _ = a.Write(request(plain)) }()
			_, err := m.Server(someTime(t), b, ListenConfig{SetupTimeout: time.Second, ProgressTimeout: time.Second, Seal: s.seal})
			require.ErrorIs(t, err, want)
			require.True(t, isAuthError(err))
		})
	}
}

// TestRefusalIsBounded: an initiator that does not read the refusal does not hold the place.
func TestRefusalIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newManager(t), new(seals)
		a, b := net.Pipe() // a pipe without a buffer
		defer a.Close()
		go func() { _, _ = a.Write(request(plain)) }()
		start := time.Now()
		_, err := m.Server(someTime(t), b, ListenConfig{SetupTimeout: 5 * time.Second, ProgressTimeout: 5 * time.Second, Seal: s.seal})
		require.ErrorIs(t, err, sealtest.ErrForged)
		require.Equal(t, refuseTime, time.Since(start))
		require.Equal(t, 1, s.closed(t))
		require.Zero(t, m.Pending())
	})
}

// TestCM_41_DribbledRequestCostsNoSealer: the connection has one timer, and until the Request is complete,
// authentication has no work.
func TestCM_41_DribbledRequestCostsNoSealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newManager(t), new(seals)
		l := listens(t, m, ListenConfig{SetupTimeout: 2 * time.Second, Seal: s.seal})
		start := time.Now()
		p := calls(t, l, nil)
		p.dribblesRequest()
		require.Less(t, time.Since(start), 2*time.Second+301*time.Millisecond)
		synctest.Wait()
		require.Empty(t, s.arrivals)
		require.Zero(t, m.Pending())
	})
}

// TestSealerEndsWithItsRequest: however a Request that was opened ends.
func TestSealerEndsWithItsRequest(t *testing.T) {
	broken := errors.New("broken")
	for what, end := range map[string]func(t *testing.T, l *Listener, own *Local) (closed int){
		"the listener is closed": func(t *testing.T, l *Listener, _ *Local) int {
			require.NoError(t, l.Close())
			return 1
		},
		"it is closed": func(t *testing.T, l *Listener, _ *Local) int {
			q, err := l.Accept(someTime(t))
			require.NoError(t, err)
			q.Close()
			q.Close()
			return 1
		},
		"it is accepted in vain": func(t *testing.T, l *Listener, own *Local) int {
			q, err := l.Accept(someTime(t))
			require.NoError(t, err)
			own.PrivateData = make([]byte, 300)
			require.Error(t, q.Accept(someTime(t), own))
			return 1
		},
		"it fails": func(t *testing.T, l *Listener, _ *Local) int {
			q, err := l.Accept(someTime(t))
			require.NoError(t, err)
			q.Fail(broken)
			return 1
		},
		"Prepare fails": func(t *testing.T, l *Listener, own *Local) int {
			q, err := l.Accept(someTime(t))
			require.NoError(t, err)
			own.Prepare = func(context.Context) error { return broken }
			require.ErrorIs(t, q.Accept(someTime(t), own), broken)
			return 1
		},
		"Establish fails": func(t *testing.T, l *Listener, own *Local) int {
			q, err := l.Accept(someTime(t))
			require.NoError(t, err)
			own.Establish = func(_ context.Context, llp transport.LLP, _ *mpa.Terms) error {
				llp.Abort(nil)
				return broken
			}
			require.ErrorIs(t, q.Accept(someTime(t), own), broken)
			return 0 // the Sealer belonged to the connection
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := newManager(t), new(seals)
				l := listens(t, m, ListenConfig{Seal: s.seal})
				own, _ := local(t)
				theirs, _ := sealedLocal(t, "k")
				go func() { _ = m.Dial(someTime(t), "pipe", l.Addr().String(), theirs) }()
				synctest.Wait()
				require.Len(t, l.arrived, 1)
				n := end(t, l, own)
				synctest.Wait()
				require.Equal(t, n, s.closed(t))
			})
		})
	}
}

func TestAdmit(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			m := newManager(t)
			var asked []net.Addr
			admit := errors.New("not from there")
			l, err := m.Listen(someTime(t), network, networks[network], ListenConfig{
				SetupTimeout: 5 * time.Second, ProgressTimeout: 2 * time.Second, MaxHalfOpen: 1,
				Admit: func(remote net.Addr) error {
					asked = append(asked, remote)
					defer func() { admit = nil }()
					return admit
				},
			})
			require.NoError(t, err)
			defer l.Close()
			own, _ := local(t)
			own.NoFallback = true
			require.Error(t, m.Dial(someTime(t), network, l.Addr().String(), own))
			require.Len(t, asked, 1)
			require.NotNil(t, asked[0])
			done := make(chan error, 1)
			go func() {
				q, err := l.Accept(someTime(t))
				if err == nil {
					theirs, _ := local(t)
					err = q.Accept(someTime(t), theirs)
				}
				done <- err
			}()
			require.NoError(t, m.Dial(someTime(t), network, l.Addr().String(), own), "the next has the only place")
			require.NoError(t, <-done)
			require.Len(t, asked, 2)
		})
	}
}

// TestAdmitComesBeforeAnyOctet: a connection that is not admitted takes no place from another one.
func TestAdmitComesBeforeAnyOctet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		closed := false
		l := listens(t, m, ListenConfig{MaxHalfOpen: 1, Admit: func(net.Addr) error {
			if closed {
				return errLimit
			}
			return nil
		}})
		first := calls(t, l, request(plain)[:10])
		synctest.Wait()
		closed = true
		calls(t, l, nil).wantsGone("without a reply, and without an octet of its own")
		synctest.Wait()
		require.Equal(t, 1, m.Pending())
		first.writes(request(plain)[10:])
		synctest.Wait()
		require.Len(t, l.arrived, 1, "the first was not given up for it")
	})
}

// TestCM_33_SealedDialDoesNotFallBack: a Sealer serves only one attempt.
func TestCM_33_SealedDialDoesNotFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		own, got := sealedLocal(t, "k")
		err := m.Dial(someTime(t), "pipe", peers(t, func(p *peer) { p.wants([]byte(requestKey)) }), own)
		require.ErrorIs(t, err, mpa.ErrNoReply, "so that the caller may")
		require.Equal(t, 1, own.Seal.(*sealtest.Sealer).Wrapped)
		require.Nil(t, got.llp)
	})
}

func TestCM_3_SealedRequestIsChecked(t *testing.T) {
	own, _ := sealedLocal(t, "k")
	own.PrivateData = make([]byte, 217)
	require.EqualError(t, own.CheckRequest("tcp"), "mpa: 217 octets of private data, at most 216 are left of 248: authentication takes 32")
	require.NoError(t, own.CheckRequest(SCTPUDP))
	require.Equal(t, 248, own.MaxPrivate("tcp"))
	require.Equal(t, 508, own.MaxPrivate(SCTP))
	own.PrivateData = make([]byte, 477)
	require.EqualError(t, own.CheckRequest(SCTPUDP), "sctp: 477 octets of private data, at most 476 are left of 508: authentication takes 32")
}
