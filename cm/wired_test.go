package cm

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_42_TheListenerAsksItsAuthenticator: a client without an Authenticator is refused and never reaches
// the application; a client with a key is admitted.
func TestCM_42_TheListenerAsksItsAuthenticator(t *testing.T) {
	s := siteOf(t, nil)
	server, client := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
	l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: s.server})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()

	plain := client.config()
	_, err = client.rnic.Dial(t.Context(), "pipe", l.Addr().String(), plain)
	require.Error(t, err)

	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(context.Background())
		if err == nil {
			_, err = cr.Accept(context.Background(), server.config())
		}
		accepted <- err
	}()
	proves := client.config()
	proves.Auth = s.client
	qp, err := client.rnic.Dial(t.Context(), "pipe", l.Addr().String(), proves)
	require.NoError(t, err)
	require.NoError(t, <-accepted, "the first request is that of the client with a key")
	_, known := qp.Peer()
	require.True(t, known)

	a, b := net.Pipe()
	go func() { _, _ = client.rnic.Client(context.Background(), a, plain) }()
	_, err = server.rnic.Server(t.Context(), b, &iwarp.ListenConfig{Auth: s.server})
	require.ErrorIs(t, err, iwarp.ErrAuth)
}

// TestCM_42_AdmitIsAsked: before anything is read.
func TestCM_42_AdmitIsAsked(t *testing.T) {
	server, client := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
	asked := make(chan net.Addr, 2) // Dial tries twice
	l, err := server.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Admit: func(remote net.Addr) error {
		asked <- remote
		return net.ErrClosed
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = client.rnic.Dial(t.Context(), "pipe", l.Addr().String(), client.config())
	require.Error(t, err)
	require.NotNil(t, <-asked)
}
