// Package rebinding recognises HTTP requests that the name of another site has led to this host (DNS rebinding).
package rebinding

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Refuse answers a request to a loopback address whose Host is neither localhost nor an IP address, because a page of another
// site has sent it. It reports whether it has answered.
func Refuse(w http.ResponseWriter, r *http.Request) bool {
	if !misdirected(r) {
		return false
	}
	http.Error(w, "this address answers by the name localhost and by its numbers only", http.StatusMisdirectedRequest)
	return true
}

func misdirected(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err = netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && !strings.EqualFold(host, "localhost")
}
