package setup

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// An outage is a sessionListener in an outage. Sessions arrive nevertheless.
type outage struct {
	sessionListener
	begins chan error // what Accept returns before the first session
	over   atomic.Bool
}

func (o *outage) Accept() (*sctp.Request, error) {
	if err, ok := <-o.begins; ok {
		return nil, err
	}
	return o.sessionListener.Accept()
}

func (o *outage) Outage() error {
	if o.over.Load() {
		return nil
	}
	return syscall.EMFILE
}

// lines are the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func (l lines) wants(t *testing.T, text string) {
	t.Helper()
	select {
	case line := <-l:
		require.Contains(t, line, text)
	case <-time.After(20 * time.Second):
		require.Fail(t, "nothing is logged", text)
	}
}

// TestOutageOverSCTP: it is logged and reported as over TCP. A session on an existing association does not end it.
func TestOutageOverSCTP(t *testing.T) {
	m, log := newManager(t), make(lines, 10)
	m.cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	cfg, err := m.Complete(nil)
	require.NoError(t, err)
	src, err := m.source(someTime(t), SCTPUDP, "127.0.0.1:0", cfg)
	require.NoError(t, err)
	o := &outage{sessionListener: src.(*sessions).sessionListener, begins: make(chan error, 1)}
	o.begins <- syscall.EMFILE
	close(o.begins)
	src.(*sessions).sessionListener = o
	l, err := m.listen(src, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })

	log.wants(t, "no connection can be taken")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Accept(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, transport.ErrExhausted)

	connects := func() {
		t.Helper()
		own, _ := local(t)
		dialled := make(chan error, 1)
		go func() { dialled <- m.Dial(someTime(t), SCTPUDP, l.Addr().String(), own) }()
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		theirs, _ := local(t)
		require.NoError(t, q.Accept(someTime(t), theirs))
		require.NoError(t, <-dialled)
	}
	connects()
	require.Empty(t, log, "it lasts")
	o.over.Store(true)
	connects()
	log.wants(t, "connections can be taken again")
	require.Empty(t, log)
}

// A scarce is a listener that finds no descriptor for the first connections.
type scarce struct {
	net.Listener
	left int // how many more times that happens
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.left > 0 {
		s.left--
		return nil, syscall.EMFILE
	}
	return s.Listener.Accept()
}

// TestNoConnectionTakesNoPlace: accepts fail for lack of a descriptor more often than the listener has places, and the
// listener goes on.
func TestNoConnectionTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		cfg, err := m.Complete(&ListenConfig{MaxHalfOpen: 2})
		require.NoError(t, err)
		src, err := m.source(someTime(t), "pipe", "", cfg)
		require.NoError(t, err)
		src.(*connections).Listener = &scarce{src.(*connections).Listener, 5}
		l, err := m.listen(src, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		p := calls(t, l, request(plain))
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		require.NoError(t, q.Reject(-1, -1, nil))
		p.wants(frame(replyKey, "60 01 0000"))
	})
}
