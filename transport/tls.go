package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

var errNoTLSConfig = errors.New("transport: TLS needs a tls.Config")

// TLSClient runs the client's side of a TLS 1.3 handshake over c. The handshake has ended
// when TLSClient returns, as [NewStream] requires. TLSClient does not change cfg, which may be
// shared. It does not offer lower versions of TLS, even if cfg allows them. It closes c on
// failure.
func TLSClient(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	return secure(ctx, c, cfg, tls.Client)
}

// TLSServer is TLSClient for the side that has accepted the connection.
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
