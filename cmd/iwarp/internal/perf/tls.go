package perf

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/transport"
)

// serveTLS serves the tcp baseline over TLS 1.3, with the certificate and the configuration of authmode.TLS.
func serveTLS(host string, w workload) (service, error) {
	cfg, err := authmode.ServerTLS()
	if err != nil {
		return nil, err
	}
	return serveSockets(host, w, func(c *net.TCPConn) error {
		ctx, stop := context.WithTimeout(context.Background(), peer.Timeout)
		secure, err := transport.TLSServer(ctx, c, cfg)
		stop()
		if err != nil {
			return err
		}
		return newTCPEnd(secure, &w).serve()
	})
}

func dialTLS(addr string, w workload) (driver, error) {
	cfg, err := authmode.ClientTLS()
	if err != nil {
		return nil, err
	}
	return dialStreams(addr, w, func(c *net.TCPConn) (net.Conn, error) {
		ctx, stop := context.WithTimeout(context.Background(), peer.Timeout)
		defer stop()
		return transport.TLSClient(ctx, c, cfg)
	})
}
