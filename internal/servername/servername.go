// Package servername completes a configuration of TLS for the server at an address.
package servername

import (
	"crypto/tls"
	"net"
	"net/netip"
)

// For returns cfg as package tls has it in Dial: without a ServerName it is the host of addr. The zone of an
// address of IPv6 is left out, because a certificate has addresses without one, and would not match. For
// does not change cfg, which may be nil. An addr that has no host leaves it as it is.
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
