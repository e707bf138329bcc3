package iwarp_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
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

// TestCloseOverTLSIsBounded: TLS tells the peer of the end of our half, and would wait for five
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
				cert := wiretest.Certificate(t)
				client, server := newSide(t, &iwarp.Config{CloseTimeout: time.Second}), newSide(t, nil)
				a, b := transport.Pipe(transport.PipeOptions{})
				network := newFullConn(a)
				accepted := make(chan error, 1)
				go func() {
					cr, err := server.rnic.Server(context.Background(), b, &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
					if err == nil {
						server.qp, err = cr.Accept(context.Background(), &iwarp.QPConfig{PD: server.pd})
					}
					accepted <- err
				}()
				var err error
				client.qp, err = client.rnic.Client(context.Background(), network, &iwarp.QPConfig{
					PD: client.pd, TLS: &tls.Config{RootCAs: wiretest.Roots(t, cert), ServerName: "iwarp.test"},
				})
				require.NoError(t, err)
				require.NoError(t, <-accepted)
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
