package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
)

var (
	errNoTLSConfig = errors.New("transport: TLS needs a tls.Config")
	errTLSCut      = fmt.Errorf("transport: the connection ended without a close_notify of TLS: %w", io.ErrUnexpectedEOF)
)

// TLSClient runs the client's side of a TLS 1.3 handshake over c. The handshake has ended
// when TLSClient returns, as [NewStream] requires. TLSClient does not change cfg, which may be
// shared. It does not offer lower versions of TLS, even if cfg allows them, or a configuration that its
// GetConfigForClient returns. It closes c on failure.
func TLSClient(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	return secure(ctx, c, cfg, tls.Client)
}

// TLSServer is like TLSClient, for the side that has accepted the connection.
func TLSServer(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	return secure(ctx, c, cfg, tls.Server)
}

func secure(ctx context.Context, c net.Conn, cfg *tls.Config, side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, error) {
	if cfg == nil {
		_ = c.Close()
		return nil, errNoTLSConfig
	}
	t := side(belowTLS{c}, atLeast13(cfg))
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, causeOf(ctx, err)
	}
	return t, nil
}

// causeOf adds the cause of ctx to the error of ctx, if ctx has a cause of its own. Package tls reports no cause.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// atLeast13 returns cfg without the lower versions of TLS. If GetConfigForClient returns a configuration, package tls takes the
// versions from that.
func atLeast13(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS13)
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(h)
			if err != nil || chosen == nil {
				return nil, err
			}
			return atLeast13(chosen), nil
		}
	}
	return cfg
}

// belowTLS is what a tls.Conn reads from. Package tls treats the end of a connection between two
// records as an end by the peer, which anyone on the path could forge (RFC 8446 section 6.1).
type belowTLS struct{ net.Conn }

func (c belowTLS) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && errors.Is(err, io.EOF) { // with octets, package tls takes io.EOF only for their end
		err = errTLSCut
	}
	return n, err
}

// NetConn returns the connection below, as the NetConn of a tls.Conn does.
func (c belowTLS) NetConn() net.Conn { return c.Conn }
