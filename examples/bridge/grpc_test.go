package main

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket"
)

// TestRSK_19_GRPC runs a gRPC server on a rsocket.Listener, and a client that dials with rsocket.Dialer.
func TestRSK_19_GRPC(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, rnic.Close()) }()
	l, err := rsocket.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	dial := rsocket.Dialer(rnic, nil)
	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	require.NoError(t, err)
	for range 10 {
		answer, err := grpc_health_v1.NewHealthClient(client).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, answer.GetStatus())
	}
	require.NoError(t, client.Close())
	server.Stop()
	require.NoError(t, <-served)
}
