package cm

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// accepts handles one request of a listener with that configuration. The QP is nil if none resulted.
func accepts(t *testing.T, e *end, lc *iwarp.ListenConfig) (addr string, qp <-chan *iwarp.QP) {
	l, err := e.rnic.Listen(t.Context(), "pipe", "", lc)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	got := make(chan *iwarp.QP, 1)
	go func() {
		defer close(got)
		cr, err := l.Accept(t.Context())
		if err != nil {
			return
		}
		if qp, err := cr.Accept(t.Context(), e.config()); err == nil {
			got <- qp
		}
	}()
	return l.Addr().String(), got
}

// TestCM_34_42_OneSideAlone: a client with an Authenticator ends the connection to a server without one, and
// a listener with one does not report a client without one to the application.
func TestCM_34_42_OneSideAlone(t *testing.T) {
	for _, where := range []string{"both", "client", "server"} {
		synctest.Test(t, func(t *testing.T) {
			s := siteOf(t, nil)
			client, server := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
			qc, lc := client.config(), &iwarp.ListenConfig{}
			if where != "server" {
				qc.Auth = s.client
			}
			if where != "client" {
				lc.Auth = s.server
			}
			addr, accepted := accepts(t, server, lc)
			qp, err := client.rnic.Dial(t.Context(), "pipe", addr, qc)
			if where == "both" {
				require.NoError(t, err)
				other := <-accepted
				peer, ok := other.Peer()
				require.True(t, ok)
				require.Equal(t, testClientID, peer.Name)
				require.NoError(t, qp.Abort())
				require.NoError(t, other.Abort())
				return
			}
			require.Error(t, err)
			synctest.Wait()
			if where == "client" {
				require.ErrorIs(t, err, iwarp.ErrAuth)
				<-(<-accepted).Done() // the server treats it as a connection, and the client has ended it
				return
			}
			require.Empty(t, accepted)
			require.EqualValues(t, 1, s.server.Stats().Refused[ReasonNoBlock])
		})
	}
}

// TestCM_42_AnyRouteToTheListener: a connection that the program has made itself is authenticated, too.
func TestCM_42_AnyRouteToTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := siteOf(t, nil)
		client, server := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
		a, b := net.Pipe()
		go func() { _, _ = client.rnic.Client(t.Context(), a, client.config()) }()
		_, err := server.rnic.Server(t.Context(), b, &iwarp.ListenConfig{Auth: s.server})
		require.ErrorIs(t, err, iwarp.ErrAuth)
	})
}

// TestCM_41_42_AdmitIsAskedFirst: nothing is read from a connection before it is admitted.
func TestCM_41_42_AdmitIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := siteOf(t, nil)
		client, server := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
		asked := 0
		addr, accepted := accepts(t, server, &iwarp.ListenConfig{Auth: s.server, Admit: func(net.Addr) error {
			asked++
			return errors.New("not this one")
		}})
		qc := client.config()
		qc.Auth = s.client
		_, err := client.rnic.Dial(t.Context(), "pipe", addr, qc)
		require.Error(t, err)
		synctest.Wait()
		require.Equal(t, 1, asked)
		require.Empty(t, accepted)
		require.Zero(t, s.server.Stats().HMACs)
	})
}
