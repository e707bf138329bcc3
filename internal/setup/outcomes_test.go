package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpudp"
)

// TestEachFailureHasACause: however deep in the error's chain the failure is.
func TestEachFailureHasACause(t *testing.T) {
	errAuth := errors.New("not authenticated")
	m := &Manager{cfg: Config{Auth: errAuth}}
	for _, c := range []struct {
		err  error
		want counters.Cause
	}{
		{errEvicted, counters.CauseEvicted},
		{sctp.ErrGivenUp, counters.CauseEvicted},
		{errNoProgress, counters.CauseNoProgress},
		{errSetupTimeout, counters.CauseTimeout},
		{context.DeadlineExceeded, counters.CauseTimeout},
		{tlsError(context.DeadlineExceeded), counters.CauseTimeout},
		{authError{errors.New("no")}, counters.CauseAuthentication},
		{errAuth, counters.CauseAuthentication},
		{tlsError(io.EOF), counters.CauseTLS},
		{tlsError(tls.RecordHeaderError{}), counters.CauseTLS},
		{tlsError(errors.New("certificate")), counters.CauseTLS},
		{mpa.ErrTLS, counters.CauseTLS},
		{tls.RecordHeaderError{}, counters.CauseTLS},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, counters.CauseTLS},
		{&transport.Fault{Code: transport.MPAStartup, Err: errors.New("no Request")}, counters.CauseMalformed},
		{&transport.Fault{Code: transport.MPAConnectionLost, Err: io.EOF}, counters.CauseConnection},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, counters.CauseConnection},
		{net.ErrClosed, counters.CauseConnection},
		{sctp.ErrRefused, counters.CauseConnection},
		{fmt.Errorf("association aborted: %w", syscall.ECONNRESET), counters.CauseConnection},
		{fmt.Errorf("no answer: %w", os.NewSyscallError("read", syscall.ETIMEDOUT)), counters.CauseConnection},
		{fmt.Errorf("no answer: %w", os.NewSyscallError("wsarecv", syscall.Errno(10060))), counters.CauseConnection},
		{&sctp.ViolationError{What: "a DDP segment before its answer"}, counters.CauseMalformed},
		{&RejectError{}, counters.CauseRejected},
		{fmt.Errorf("setup: %w", &os.PathError{Op: "open", Path: "keys", Err: syscall.ENOENT}), counters.CauseOther},
		{context.Canceled, counters.CauseOther},
		{&transport.Fault{Code: transport.MPAConnectionLost, Err: context.Canceled}, counters.CauseOther},
		{errors.New("anything"), counters.CauseOther},
	} {
		require.Equal(t, c.want, m.causeOf(fmt.Errorf("wrapped: %w", c.err)), "%v", c.err)
	}
}

// TestOutcomesOfAServer: a refused connection is counted, and any other is not.
func TestOutcomesOfAServer(t *testing.T) {
	for name, octets := range map[string][]byte{"a Request": request(plain), "another protocol": []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n")} {
		m := newManager(t)
		c, peer := net.Pipe()
		go func() { _, _ = peer.Write(octets) }()
		q, err := m.Server(someTime(t), c, ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute})
		refused, failed := m.Outcomes()
		require.Zero(t, failed, name)
		if name == "a Request" {
			require.NoError(t, err)
			require.Zero(t, refused)
			q.Close()
		} else {
			require.Error(t, err)
			require.Equal(t, counters.Setups{counters.CauseMalformed: 1}, refused)
		}
		require.NoError(t, peer.Close())
	}
	m := newManager(t)
	m.fail(nil)
	_, failed := m.Outcomes()
	require.Zero(t, failed)
}

// TestResetIsTheEndOfThePeer: Windows has its own numbers for a reset.
func TestResetIsTheEndOfThePeer(t *testing.T) {
	m := &Manager{}
	for _, reset := range []error{syscall.ECONNRESET, syscall.Errno(10054), syscall.Errno(10053)} {
		err := &net.OpError{Op: "read", Err: os.NewSyscallError("read", reset)}
		require.ErrorContains(t, tlsError(err), "the peer closed the connection; it may not use TLS")
		lost := &transport.Fault{Code: transport.MPAConnectionLost, Err: err}
		require.EqualError(t, m.failure(lost, lack{missing: "an MPA Reply"}), "the peer closed the connection before it sent an MPA Reply")
	}
}

// TestErrorOfAFailedSetUp: the error says why the set-up failed, and that the peer closed the connection only if the
// peer did.
func TestErrorOfAFailedSetUp(t *testing.T) {
	lost := func(err error) error { return &transport.Fault{Code: transport.MPAConnectionLost, Err: err} }
	const hangsUp = "the peer closed the connection before it sent an MPA Reply"
	m := newManager(t)
	for _, c := range []struct {
		err  error
		want string // empty: err itself
	}{
		{lost(mpa.ErrNoReply), hangsUp},
		{lost(io.EOF), hangsUp},
		{lost(io.ErrUnexpectedEOF), hangsUp},
		{lost(syscall.EPIPE), hangsUp},
		{lost(net.ErrClosed), "the connection was closed on this side"},
		{lost(io.ErrClosedPipe), "the connection was closed on this side"},
		{lost(syscall.EIO), ""},
		{lost(fmt.Errorf("%w: %w", context.Canceled, io.EOF)), ""},
		{lost(fmt.Errorf("%w: %w", context.DeadlineExceeded, io.EOF)), ""},
		{&transport.Fault{Code: transport.MPAStartup, Err: io.EOF}, ""},
		{io.EOF, ""},
		{mpa.ErrTLS, ""},
	} {
		err := m.failure(c.err, lack{missing: "an MPA Reply"})
		require.ErrorIs(t, err, c.err)
		if c.want == "" {
			require.Equal(t, c.err, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
	require.EqualError(t, m.failure(mpa.ErrTLS, lack{tls: "QPConfig.TLS"}), "the peer uses TLS: set QPConfig.TLS")
	m.Refuse(errClosed)
	require.Equal(t, errClosed, m.failure(lost(net.ErrClosed), lack{}), "the RNIC has closed the connection")
	require.EqualError(t, m.failure(lost(io.EOF), lack{missing: "an MPA Reply"}), hangsUp, "the peer was earlier")
	require.ErrorContains(t, tlsError(io.ErrUnexpectedEOF), "the peer closed the connection; it may not use TLS")
	require.EqualError(t, listenError(&net.OpError{Op: "listen", Err: syscall.EADDRINUSE}), "listen: "+syscall.EADDRINUSE.Error())
	require.EqualError(t, listenError(io.EOF), "listen: EOF")
}

// TestErrorOfAPeerThatHangsUpIsASentence: whatever is known of the peer.
func TestErrorOfAPeerThatHangsUpIsASentence(t *testing.T) {
	m := &Manager{}
	for want, s := range map[string]lack{
		"all of an MPA Request":                               {missing: "all of an MPA Request", tls: "ListenConfig.TLS"},
		"a; it may speak another protocol, or expect TLS (x)": {missing: "a", tls: "x", initiator: true},
		"a; it may speak another protocol, expect TLS (x), or know only MPA revision 1 (MPAOptions.Revision)": {missing: "a", tls: "x", initiator: true, once: true},
		"a; it may know only MPA revision 1 (MPAOptions.Revision)":                                            {missing: "a", initiator: true, once: true},
		"a; it may have refused the certificate of this side, or that it has none (QPConfig.TLS)":             {missing: "a", initiator: true, secured: true},
	} {
		lost := &transport.Fault{Code: transport.MPAConnectionLost, Err: io.EOF}
		require.EqualError(t, m.failure(lost, s), "the peer closed the connection before it sent "+want)
	}
}

// TestRefusalsOfAListenerAreCounted: each one once.
func TestRefusalsOfAListenerAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{MaxHalfOpen: 2})
		calls(t, l, []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"))
		synctest.Wait()
		calls(t, l, nil)
		time.Sleep(time.Minute)
		for range 3 {
			calls(t, l, nil)
			synctest.Wait()
		}
		refused, failed := m.Outcomes()
		require.Equal(t, counters.Setups{counters.CauseMalformed: 1, counters.CauseNoProgress: 1, counters.CauseEvicted: 1}, refused)
		require.Zero(t, failed)
	})
}

// records are the records that a Handler writes, one by one.
type records chan string

func (r records) Write(b []byte) (int, error) {
	r <- string(b)
	return len(b), nil
}

// TestRefusedSessionsAreCounted: they are also logged with the initiator's address, even if they never become a Request.
func TestRefusedSessionsAreCounted(t *testing.T) {
	m := newManager(t)
	log := make(records, 4)
	m.cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	sealed := func(context.Context, Arrival) (Sealer, error) { return nil, errors.New("not today") }
	l, err := m.Listen(someTime(t), SCTPUDP, "127.0.0.1:0", ListenConfig{SetupTimeout: time.Minute, MaxHalfOpen: 4, Seal: sealed})
	require.NoError(t, err)
	client := sctpudp.NewClient(sctpudp.Config{})
	t.Cleanup(client.Close)
	for _, first := range [][]byte{{0, 0, 0, 2}, {0, 0, 0, 1}} { // an Accept without an Initiate, and an Initiate
		s, err := client.Open(someTime(t), l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, s.Send(sctp.PPIDControl, first, true))
		select {
		case line := <-log:
			require.Contains(t, line, fmt.Sprintf("msg=\"connection refused during set-up\" err=\"%v: ", s.LocalAddr()))
		case <-time.After(10 * time.Second):
			require.Fail(t, "nothing is logged", "%v", first)
		}
		s.Release(false)
	}
	refused, _ := m.Outcomes()
	require.Equal(t, counters.Setups{counters.CauseMalformed: 1, counters.CauseAuthentication: 1}, refused)
	require.Empty(t, log)
}
