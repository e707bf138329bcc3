package setup

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// listens makes a listener on the pipe.
func listens(t *testing.T, m *Manager, cfg ListenConfig) *Listener {
	t.Helper()
	if cfg.SetupTimeout == 0 {
		cfg.SetupTimeout = 5 * time.Second
	}
	if cfg.MaxHalfOpen == 0 {
		cfg.MaxHalfOpen = 64
	}
	cfg.ProgressTimeout = 2 * time.Second
	l, err := m.Listen(someTime(t), "pipe", "", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func TestMPA_62_63_71_74_ListenerSurvivesJunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{})
		for name, octets := range map[string][]byte{
			"another protocol":       []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"),
			"a Reply":                frame(replyKey, plain),
			"revision 0":             request("40 00 0000"),
			"revision 3":             request("40 03 0000"),
			"too much private data":  request("40 01 0201"),
			"too little for the S":   request("50 02 0003 000000"),
			"private data 16 bit on": request("40 01 ffff"),
		} {
			p := calls(t, l, octets)
			n, err := p.c.Read(make([]byte, 1))
			require.Zero(t, n, "%s: not one octet is answered", name)
			require.Error(t, err, name)
		}
		calls(t, l, request(plain))
		_, err := l.Accept(someTime(t))
		require.NoError(t, err, "the listener lives")
	})
}

func TestMPA_77_OneTimerForTheWholeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{SetupTimeout: 2 * time.Second})
		start := time.Now()
		p := calls(t, l, nil)
		p.dribblesRequest()
		synctest.Wait()
		require.Less(t, time.Since(start), 2*time.Second+301*time.Millisecond, "octets that trickle in do not extend it")
		require.Zero(t, m.Pending())
		require.Empty(t, l.arrived)
	})
}

// TestSEC_2_HalfOpenConnectionsAreBounded: the oldest connection with an incomplete Request makes room for the newest. A
// connection with a complete Request never does.
func TestSEC_2_HalfOpenConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{MaxHalfOpen: 2, SetupTimeout: 10 * time.Second})
		start := time.Now()
		oldest := calls(t, l, nil)
		synctest.Wait()
		younger := calls(t, l, nil)
		synctest.Wait()
		require.Equal(t, 2, m.Pending())
		good := calls(t, l, request(plain))
		synctest.Wait()
		require.Equal(t, 2, m.Pending())
		require.Len(t, l.arrived, 1, "the newest has a place")
		oldest.wantsEnd("of the oldest")
		late := calls(t, l, request(plain))
		younger.wantsEnd("that of the next for the next")
		synctest.Wait()
		require.Zero(t, time.Since(start), "and nothing waits for that")
		require.Len(t, l.arrived, 2)

		last := calls(t, l, request(plain))
		synctest.Wait()
		require.Equal(t, 2, m.Pending(), "one that waits for the application keeps its place")
		require.Len(t, l.arrived, 2)
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, l.arrived, 1, "also when it has been handed to the application")
		own, _ := local(t)
		require.NoError(t, q.Accept(someTime(t), own))
		good.wants(frame(replyKey, plain))
		synctest.Wait()
		require.Len(t, l.arrived, 2, "an established one does not")
		for _, p := range []*peer{late, last} {
			q, err = l.Accept(someTime(t))
			require.NoError(t, err)
			require.NoError(t, q.Reject(-1, -1, nil))
			p.wants(frame(replyKey, "60 01 0000"))
		}
	})
}

// TestPrepareTakesItsTime: ListenConfig.SetupTimeout bounds the sending of the answer, not what the application does before.
func TestPrepareTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{SetupTimeout: 2 * time.Second})
		p := calls(t, l, request(plain))
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		own, _ := local(t)
		own.Prepare = func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			return ctx.Err()
		}
		require.NoError(t, q.Accept(someTime(t), own))
		p.wants(frame(replyKey, plain))
	})
}

// TestSEC_2_RequestThatIsBeingAuthenticatedKeepsItsPlace: the Request is complete.
func TestSEC_2_RequestThatIsBeingAuthenticatedKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newManager(t), new(seals)
		l := listens(t, m, ListenConfig{MaxHalfOpen: 1, Seal: func(ctx context.Context, a Arrival) (Sealer, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			return s.seal(ctx, a)
		}})
		own, _ := sealedLocal(t, "k")
		dialled := make(chan error, 1)
		go func() { dialled <- m.Dial(someTime(t), "pipe", l.Addr().String(), own) }()
		synctest.Wait()
		calls(t, l, nil)
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		theirs, _ := local(t)
		require.NoError(t, q.Accept(someTime(t), theirs))
		require.NoError(t, <-dialled)
	})
}

// TestListenerWithFullPlacesCloses: it has accepted a connection for which there is no place.
func TestListenerWithFullPlacesCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{MaxHalfOpen: 1})
		first := calls(t, l, request(plain))
		synctest.Wait()
		require.Len(t, l.arrived, 1)
		second := calls(t, l, request(plain))
		synctest.Wait()
		require.NoError(t, l.Close())
		first.wantsEnd("it is dropped")
		second.wantsGone("and the one that had no place")
		synctest.Wait()
		require.Zero(t, m.Pending())
	})
}

func TestListenerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{})
		taken := calls(t, l, request(plain))
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		waits := calls(t, l, request(plain))
		silent := calls(t, l, nil)
		accepts := make(chan error, 1)
		synctest.Wait()
		require.Len(t, l.arrived, 1)
		require.NoError(t, l.Close())
		waits.wantsEnd("a request that was not accepted is dropped")
		silent.wantsEnd("and so is one that was not complete")
		go func() {
			_, err := l.Accept(context.Background())
			accepts <- err
		}()
		require.ErrorIs(t, <-accepts, net.ErrClosed)
		require.NoError(t, l.Close(), "closing again does nothing")

		own, _ := local(t)
		require.NoError(t, q.Accept(someTime(t), own), "one that Accept has returned lives on")
		taken.wants(frame(replyKey, plain))
		require.Empty(t, m.listeners)
	})
}

func TestAcceptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{})
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(chan error, 2)
		accept := func() {
			_, err := l.Accept(ctx)
			errs <- err
		}
		go accept()
		go accept()
		synctest.Wait()
		require.Empty(t, errs)
		calls(t, l, request(plain))
		require.NoError(t, <-errs, "a request ends one wait")
		synctest.Wait()
		require.Empty(t, errs)
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled)
		calls(t, l, request(plain))
		synctest.Wait()
		_, err := l.Accept(ctx)
		require.NoError(t, err, "what need not block succeeds though the context has ended")
	})
}
