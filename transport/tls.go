package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

var errNoTLSConfig = errors.New("transport: TLS needs a tls.Config")

// TLSClient runs the client's side of a TLS 1.3 handshake over c. The handshake has
// ended when it returns, which [NewStream] relies on. cfg is not changed and may be
// shared; lower versions that it allows are not offered. c is closed on failure.
func TLSClient(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	return secure(ctx, c, cfg, tls.Client)
}

// TLSServer is TLSClient for the side that was connected to.
func TLSServer(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	return secure(ctx, c, cfg, tls.Server)
}

func secure(ctx context.Context, c net.Conn, cfg *tls.Config, side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, error) {
	if cfg == nil {
		_ = c.Close()
		return nil, errNoTLSConfig
	}
	cfg = cfg.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS13)
	t := side(c, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return t, nil
}
