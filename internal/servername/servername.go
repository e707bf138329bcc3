// Package servername completes a TLS configuration for the server at an address.
package servername

import (
	"crypto/tls"
	"net"
	"net/netip"
)

// For returns cfg with a ServerName, like tls.Dial: if cfg has none, it is the host of addr. The zone of an
// IPv6 address is omitted, because the addresses in certificates have no zone, and would not match. For
// does not change cfg, which may be nil. If addr has no host, ServerName stays empty.
func For(cfg *tls.Config, addr string) *tls.Config {
	host, _, err := net.SplitHostPort(addr)
	if cfg == nil || cfg.ServerName != "" || err != nil {
		return cfg
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() != "" {
		host = ip.WithZone("").String()
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}
