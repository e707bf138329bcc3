package iwarp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/transport"
)

// A fullConn is a connection whose network takes no more octets once it is full.
type fullConn struct {
	net.Conn
	hole net.Conn // takes nothing
	full atomic.Bool
}

func newFullConn(c net.Conn) *fullConn {
	hole, _ := net.Pipe()
	return &fullConn{Conn: c, hole: hole}
}

func (c *fullConn) Write(p []byte) (int, error) {
	if c.full.Load() {
		return c.hole.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *fullConn) SetWriteDeadline(t time.Time) error {
	_ = c.hole.SetWriteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *fullConn) Close() error {
	_ = c.hole.Close()
	return c.Conn.Close()
}

// TestCloseOverTLSIsBounded: TLS announces the end of our half to the peer, and would wait five
// seconds for a network that takes nothing.
func TestCloseOverTLSIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *side) error
		want error
	}{
		"Close": {func(s *side) error { return s.qp.Close() }, os.ErrDeadlineExceeded},
		"Shutdown": {func(s *side) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return s.rnic.Shutdown(ctx)
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := newSide(t, &iwarp.Config{CloseTimeout: time.Second}), newSide(t, nil)
				a, b := transport.Pipe(transport.PipeOptions{})
				network := newFullConn(a)
				connectOverTLS(t, client, server, network, b)
				synctest.Wait()
				network.full.Store(true)
				began := time.Now()
				require.ErrorIs(t, c.end(client), c.want)
				require.Equal(t, time.Second, time.Since(began))
				require.NoError(t, server.qp.Abort())
			})
		})
	}
}

// TestSEC_38_EndOfTLSThatIsNotTold: an end of the connection below TLS, for which no key is needed, must not end a QP gracefully
// (RFC 8446 section 6.1).
func TestSEC_38_EndOfTLSThatIsNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(client *side, below net.Conn) error
		want iwarp.EventKind
	}{
		"the peer closes":     {func(client *side, _ net.Conn) error { return client.qp.Close() }, iwarp.EventClosed},
		"the connection ends": {func(_ *side, below net.Conn) error { return below.Close() }, iwarp.EventConnectionLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := newSide(t, nil), newSide(t, nil)
				a, b := transport.Pipe(transport.PipeOptions{})
				connectOverTLS(t, client, server, a, b)
				require.NoError(t, c.end(client, a))
				<-server.qp.Done()
				e := <-server.rnic.Events()
				require.Equal(t, c.want.String(), e.Kind.String())
				require.Equal(t, c.want == iwarp.EventConnectionLost, errors.Is(e.Err, net.ErrClosed))
			})
		})
	}
}

// connectOverTLS connects a QP of each side over the two ends of a connection.
func connectOverTLS(t *testing.T, client, server *side, a, b net.Conn) {
	cert, roots := selfsigned.New("iwarp.test")
	accepted := make(chan error, 1)
	go func() {
		cr, err := server.rnic.Server(context.Background(), b, &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
		if err == nil {
			server.qp, err = cr.Accept(context.Background(), &iwarp.QPConfig{PD: server.pd})
		}
		accepted <- err
	}()
	var err error
	client.qp, err = client.rnic.Client(context.Background(), a, &iwarp.QPConfig{
		PD: client.pd, TLS: &tls.Config{RootCAs: roots, ServerName: "iwarp.test"},
	})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
}
