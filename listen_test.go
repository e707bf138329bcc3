package iwarp

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// listens makes a listener on the pipe.
func (s *side) listens(lc *ListenConfig) *Listener {
	s.Helper()
	l, err := s.rnic.Listen(testContext(s.T), "pipe", "", lc)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, l.Close()) })
	return l
}

// calls connects to l and sends octets; it is a peer that plays an initiator.
func calls(t *testing.T, l *Listener, octets []byte) *peer {
	t.Helper()
	c, err := transport.Dial(testContext(t), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{TB: t, c: c}
	p.writes(octets)
	return p
}

func request(rest string) []byte { return append([]byte(requestKey), hx(rest)...) }

func TestMPA_62_63_71_74_ListenerSurvivesJunk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(nil)
		for name, octets := range map[string][]byte{
			"another protocol":       []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"),
			"a Reply":                append([]byte(replyKey), hx("40 01 0000")...),
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
		calls(t, l, request("40 01 0000"))
		_, err := l.Accept(testContext(t))
		require.NoError(t, err, "the listener lives")
		require.Zero(t, s.rnic.used.qp)
	})
}

// halfOpen counts the connections that are being set up.
func (r *RNIC) halfOpen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

func TestMPA_77_OneTimerForTheWholeRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(&ListenConfig{SetupTimeout: 2 * time.Second})
		start := time.Now()
		p := calls(t, l, nil)
		octets := request("40 01 0000")
		for i := 0; ; i++ { // one octet every 300 ms would take 6 s
			if _, err := p.c.Write(octets[i : i+1]); err != nil {
				break
			}
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		require.Less(t, time.Since(start), 2*time.Second+301*time.Millisecond, "octets that trickle in do not extend it")
		require.Zero(t, s.rnic.halfOpen())
		require.Empty(t, l.arrived)
	})
}

// TestSEC_2_HalfOpenConnectionsAreBounded: the oldest that has not said all makes room for
// the newest, but never one that has.
func TestSEC_2_HalfOpenConnectionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(&ListenConfig{MaxHalfOpen: 2, SetupTimeout: 10 * time.Second})
		start := time.Now()
		oldest := calls(t, l, nil)
		synctest.Wait()
		younger := calls(t, l, nil)
		synctest.Wait()
		require.Equal(t, 2, s.rnic.halfOpen())
		good := calls(t, l, request("40 01 0000"))
		synctest.Wait()
		require.Equal(t, 2, s.rnic.halfOpen())
		require.Len(t, l.arrived, 1, "the newest has a place")
		oldest.wantEnd("of the oldest")
		late := calls(t, l, request("40 01 0000"))
		younger.wantEnd("that of the next for the next")
		synctest.Wait()
		require.Zero(t, time.Since(start), "and nothing waits for that")
		require.Len(t, l.arrived, 2)

		last := calls(t, l, request("40 01 0000"))
		synctest.Wait()
		require.Equal(t, 2, s.rnic.halfOpen(), "one that waits for the application keeps its place")
		require.Len(t, l.arrived, 2)
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, l.arrived, 1, "also when it has been handed to the application")
		qp, err := cr.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.NoError(t, err)
		good.reads(20)
		synctest.Wait()
		require.Len(t, l.arrived, 2, "an established one does not")
		for _, p := range []*peer{late, last} {
			cr, err = l.Accept(testContext(t))
			require.NoError(t, err)
			require.NoError(t, cr.Reject(nil))
			p.reads(20)
		}
		require.NoError(t, qp.Abort())
	})
}

// TestListenerWithFullPlacesCloses: it has a connection in hand for which there is none.
func TestListenerWithFullPlacesCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(&ListenConfig{MaxHalfOpen: 1})
		first := calls(t, l, request("40 01 0000"))
		synctest.Wait()
		require.Len(t, l.arrived, 1)
		second := calls(t, l, request("40 01 0000"))
		synctest.Wait()
		require.NoError(t, l.Close())
		first.wantEnd("it is dropped")
		second.wantGone("and the one that had no place")
		synctest.Wait()
		require.Zero(t, s.rnic.halfOpen())
	})
}

func TestListenConfigIsChecked(t *testing.T) {
	s := newSide(t, &Config{Limits: Limits{MaxHalfOpen: 4}})
	for _, lc := range []ListenConfig{{SetupTimeout: -1}, {ProgressTimeout: -1}, {MaxHalfOpen: -1}, {MaxHalfOpen: 5}} {
		_, err := s.rnic.Listen(testContext(t), "pipe", "", &lc)
		require.Error(t, err, "%+v", lc)
		a, b := net.Pipe()
		_, err = s.rnic.Server(testContext(t), a, &lc)
		require.Error(t, err)
		_, err = b.Read(make([]byte, 1))
		require.Error(t, err, "the connection is closed")
	}
	_, err := s.rnic.Listen(testContext(t), "carrier pigeon", "", nil)
	require.Error(t, err)
}

func TestListenerClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(nil)
		taken := calls(t, l, request("40 01 0000"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		waits := calls(t, l, request("40 01 0000"))
		silent := calls(t, l, nil)
		accepts := make(chan error, 1)
		synctest.Wait()
		require.Len(t, l.arrived, 1)
		require.NoError(t, l.Close())
		waits.wantEnd("a request that nobody took is dropped")
		silent.wantEnd("and so is one that was not complete")
		go func() {
			_, err := l.Accept(context.Background())
			accepts <- err
		}()
		require.ErrorIs(t, <-accepts, net.ErrClosed)
		require.NoError(t, l.Close(), "closing again does nothing")

		qp, err := cr.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.NoError(t, err, "one that Accept has returned lives on")
		taken.reads(20)
		require.NoError(t, qp.Abort())
		require.Empty(t, s.rnic.listeners)
	})
}

func TestAcceptWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(nil)
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
		calls(t, l, request("40 01 0000"))
		require.NoError(t, <-errs, "a request ends one wait")
		synctest.Wait()
		require.Empty(t, errs)
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled)
		calls(t, l, request("40 01 0000"))
		synctest.Wait()
		_, err := l.Accept(ctx)
		require.NoError(t, err, "what need not block succeeds though the context has ended")
	})
}

func TestAcceptWithABadConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, &Config{Limits: Limits{MaxIRD: 4, MaxORD: 4, MaxQueueDepth: 8, MaxQP: 1}})
		pd, err := s.rnic.AllocPD()
		require.NoError(t, err)
		require.NoError(t, pd.Close())
		for _, qc := range []*QPConfig{
			nil,
			{},
			{PD: pd},
			{PD: s.pd, IRD: 5},
			{PD: s.pd, ORD: 5},
			{PD: s.pd, IRD: -2},
			{PD: s.pd, ORD: -2},
			{PD: s.pd, SendDepth: 9},
			{PD: s.pd, RecvDepth: -1},
		} {
			p, cr := requester(t, s.rnic, "pipe", hx("40 01 0000"))
			_, err := cr.Accept(testContext(t), qc)
			require.Error(t, err, "%+v", qc)
			p.wantEnd("the connection is closed")
		}
		p, first := requester(t, s.rnic, "pipe", hx("40 01 0000"))
		qp, err := first.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.NoError(t, err)
		require.Equal(t, []int{4, 4}, []int{qp.IRD(), qp.ORD()}, "defaults stay within the limits")
		p.reads(20)
		_, second := requester(t, s.rnic, "pipe", hx("40 01 0000"))
		_, err = second.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.ErrorIs(t, err, ErrLimit)
		require.Error(t, s.pd.Close(), "a PD with a QP cannot be closed")
		require.NoError(t, qp.Abort())
		require.NoError(t, s.pd.Close())
		require.Zero(t, s.rnic.halfOpen())
	})
}

// TestRNICCloseDropsWhatWaits: requests that nobody has answered.
func TestRNICCloseDropsWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		l := s.listens(nil)
		a, b := calls(t, l, request("40 01 0000")), calls(t, l, request("40 01 0000"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, s.rnic.Close())
		a.wantEnd("closed")
		b.wantEnd("closed")
		_, err = cr.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = l.Accept(testContext(t))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
