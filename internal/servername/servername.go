// Package servername completes a configuration of TLS for the server at an address.
package servername

import (
	"crypto/tls"
	"net"
)

// For returns cfg as package tls has it in Dial: without a ServerName it is the host of addr. It
// does not change cfg, which may be nil. An addr that has no host leaves it as it is.
func For(cfg *tls.Config, addr string) *tls.Config {
	host, _, err := net.SplitHostPort(addr)
	if cfg == nil || cfg.ServerName != "" || err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}
