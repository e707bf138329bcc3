package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

var (
	errFailed = errors.New("iwarp: authentication failed")
	errNone   = errors.New("no keys")
	verbs     = Verbs[string]{
		Known:     func(p string) bool { return p != "" },
		Certified: func([16]byte, [32]byte) string { return "certified" },
		Failed:    errFailed,
	}
)

// A fake is a session whose first message consists of the given octets.
type fake struct {
	transport.Sealer
	first  int
	peer   string
	closed int
	during func() // runs in Export
}

func (f *fake) First() ([]byte, error)   { return make([]byte, f.first), nil }
func (f *fake) FirstLen() int            { return f.first }
func (f *fake) VerifyFirst([]byte) error { return nil }
func (f *fake) Peer() string             { return f.peer }
func (f *fake) Close()                   { f.closed++ }
func (f *fake) Export(string, []byte, int) ([]byte, error) {
	if f.during != nil {
		f.during()
	}
	return []byte("session"), nil
}

func TestNothingIsKnownWithoutASessionOrTLS(t *testing.T) {
	i := ForResponder(new(sync.Mutex), &verbs, nil, nil)
	require.Nil(t, i)
	_, known := i.Peer()
	require.False(t, known)
	_, err := i.Export(errNone, "", nil, 1)
	require.Equal(t, errNone, err)
	require.NoError(t, i.Configure(&rdmap.Config{}, &mpa.Terms{}))
	require.NoError(t, i.Admit(t.Context(), Connection{}))
	require.True(t, i.Admitted())
	require.False(t, i.Proves())
	i.End(true)
}

func TestSessionComesBeforeTLS(t *testing.T) {
	secure := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	f := &fake{peer: "session"}
	i := ForResponder[string](new(sync.Mutex), &verbs, f, secure)
	p, known := i.Peer()
	require.True(t, known)
	require.Equal(t, "session", p)
	i.End(false)
	p, known = i.Peer()
	require.True(t, known)
	require.Equal(t, "certified", p, "that of the session has not proved itself")
	require.Zero(t, f.closed, "it is not ours")
}

// TestPeerIsKnownAfterTheEnd: neither the peer's TLS identity nor none replaces the peer that the session has found.
func TestPeerIsKnownAfterTheEnd(t *testing.T) {
	for _, secure := range []*tls.ConnectionState{nil, {PeerCertificates: []*x509.Certificate{{}}}} {
		f := &fake{peer: "session"}
		i := ForResponder[string](new(sync.Mutex), &verbs, f, secure)
		require.NoError(t, i.Configure(&rdmap.Config{}, &mpa.Terms{}))
		for range 2 {
			i.End(true)
			require.Equal(t, 1, f.closed)
			f.peer = "closed"
			p, known := i.Peer()
			require.True(t, known)
			require.Equal(t, "session", p)
		}
	}
}

// TestSessionIsClosedWhenItsLastUserHasLeft: it is closed once, and its methods are called without the lock.
func TestSessionIsClosedWhenItsLastUserHasLeft(t *testing.T) {
	var guard sync.Mutex
	f := &fake{peer: "session"}
	i := ForResponder[string](&guard, &verbs, f, nil)
	require.NoError(t, i.Configure(&rdmap.Config{}, &mpa.Terms{}))
	f.during = func() {
		guard.Lock()
		guard.Unlock() //nolint:staticcheck // the test is that it can be locked
		i.End(true)
		require.Zero(t, f.closed)
	}
	b, err := i.Export(errNone, "", nil, 1)
	require.NoError(t, err)
	require.Equal(t, "session", string(b))
	require.Equal(t, 1, f.closed)
	i.End(true)
	require.Equal(t, 1, f.closed)
}

// TestCM_16_ExportOfASessionThatHasEnded: Export does not fall back to TLS, whose keys differ from those that the peer
// had.
func TestCM_16_ExportOfASessionThatHasEnded(t *testing.T) {
	for _, secure := range []*tls.ConnectionState{nil, {}} {
		i := ForResponder[string](new(sync.Mutex), &verbs, &fake{peer: "session"}, secure)
		require.NoError(t, i.Configure(&rdmap.Config{}, &mpa.Terms{}))
		i.End(true)
		_, err := i.Export(errNone, "", nil, 1)
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

func attempt(t *testing.T, first *fake, l *setup.Local) error {
	i := ForInitiator(new(sync.Mutex), &verbs)
	return Attempts(t.Context(), i, l, first, func(_ context.Context, a *fake) (Session[string], error) { return a, nil })
}

func TestFirstMessageTakesThePlaceOfTheRTR(t *testing.T) {
	for _, c := range []struct {
		first int
		o     mpa.Options
		want  error
	}{
		{0, mpa.Options{RTR: transport.RTRRead}, nil},
		{1, mpa.Options{RTR: transport.RTRRead}, errRTRAndAuth},
		{1, mpa.Options{StrictRTR: true}, errRTRAndAuth},
		{-1, mpa.Options{}, errFirstLen},
		{rdmap.MaxFirst, mpa.Options{}, nil},
		{rdmap.MaxFirst + 1, mpa.Options{}, errFirstLen},
	} {
		l := &setup.Local{MPA: c.o}
		err := attempt(t, &fake{first: c.first}, l)
		require.Equal(t, c.want, err)
		require.Equal(t, err == nil && c.first > 0, l.MPA.ClientServer)
	}
}

type agreeable struct{ *fake }

func (agreeable) AllowRev1() bool { return true }

func TestSecondAttempt(t *testing.T) {
	begin := func(_ context.Context, a Session[string]) (Session[string], error) { return a, nil }
	i := ForInitiator(new(sync.Mutex), &verbs)
	first, second := &fake{first: 1}, &fake{}
	l := &setup.Local{}
	require.NoError(t, Attempts[Session[string]](t.Context(), i, l, first, begin))
	s, _ := l.Again(t.Context(), mpa.ErrNoReply)
	require.Nil(t, s, "revision 1 is not allowed")
	require.Zero(t, first.closed)

	s, o := l.Again(t.Context(), retryWith{io.EOF, second})
	require.Equal(t, second, s)
	require.False(t, o.ClientServer, "as the program wants it")
	require.Equal(t, 1, first.closed)
	i.End(true)
	require.Equal(t, 1, second.closed)

	require.NoError(t, Attempts[Session[string]](t.Context(), i, l, agreeable{first}, begin))
	s, o = l.Again(t.Context(), mpa.ErrNoReply)
	require.Equal(t, agreeable{first}, s)
	require.EqualValues(t, mpa.Revision1, o.Revision)
	l.NoFallback = true
	require.NoError(t, Attempts[Session[string]](t.Context(), i, l, agreeable{first}, begin))
	s, _ = l.Again(t.Context(), mpa.ErrNoReply)
	require.Nil(t, s)
}

type retryWith struct {
	error
	with Session[string]
}

func (r retryWith) Retry() Session[string] { return r.with }

func TestAdmission(t *testing.T) {
	ended, errLost, soon := make(chan struct{}), errors.New("iwarp: lost"), context.Background()
	close(ended)
	late, cancel := context.WithCancel(soon)
	cancel()
	for name, c := range map[string]struct {
		ctx       context.Context
		opens     bool
		opensLate bool // while the connection is aborted
		err       error
		want      error
		aborts    int
	}{
		"proved":                  {ctx: soon, opens: true},
		"proved, and ended since": {ctx: soon, opens: true, err: errLost},
		"ended":                   {ctx: soon, want: errFailed},
		"lost":                    {ctx: soon, err: errLost, want: errLost},
		"late":                    {ctx: late, want: errFailed, aborts: 1},
		"proved, and aborted":     {ctx: late, opensLate: true, want: errFailed, aborts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			i := ForResponder[string](new(sync.Mutex), &verbs, &fake{first: 9}, nil)
			var cfg rdmap.Config
			require.NoError(t, i.Configure(&cfg, &mpa.Terms{}))
			require.Equal(t, 9, cfg.Gate.Len)
			require.False(t, i.Admitted())
			done, aborts := make(chan struct{}), 0
			cause := c.err
			abort := func(err error) {
				if c.opensLate {
					cfg.Gate.Opened()
				}
				aborts++
				cause = err
				close(done)
			}
			if c.opens {
				cfg.Gate.Opened()
			}
			if c.aborts == 0 {
				done = ended
			}
			err := i.Admit(c.ctx, Connection{Done: done, Abort: abort, Err: func() error { return cause }})
			require.Equal(t, c.aborts, aborts)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errFailed)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestWhatConfigureRefuses(t *testing.T) {
	of := func(first int) *Identity[string] {
		return ForResponder[string](new(sync.Mutex), &verbs, &fake{first: first}, nil)
	}
	require.ErrorIs(t, of(1).Configure(&rdmap.Config{}, &mpa.Terms{RTR: transport.RTRRead}), errFailed)
	require.Equal(t, errFirstLen, of(-1).Configure(&rdmap.Config{}, &mpa.Terms{}))
}

// TestRefused: only the peer's first message can report that ours was not accepted.
func TestRefused(t *testing.T) {
	i := ForResponder[string](new(sync.Mutex), &verbs, &fake{first: 9}, nil)
	c := rdmap.Config{RTR: transport.RTRRead}
	require.NoError(t, i.Configure(&c, &mpa.Terms{Initiator: true, RTR: transport.RTRRead}))
	require.Len(t, c.First, 9)
	require.Zero(t, c.RTR)
	require.True(t, i.Proves())
	var s rdmap.Stats
	s.Out[rdmap.OpSend].Messages, s.In[rdmap.OpTerminate].Messages = 1, 1
	require.True(t, i.Refused(transport.RDMAPStreamCatastrophic, s))
	require.False(t, i.Refused(transport.RDMAPAccess, s))
	s.In[rdmap.OpSend].Messages = 1
	require.False(t, i.Refused(transport.RDMAPStreamCatastrophic, s))
}
