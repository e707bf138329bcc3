package cm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/goiwarp/iwarp"
)

// ipNetwork returns the network in which names are looked up; false: this package does not look
// up names of that network.
func ipNetwork(network string) (string, bool) {
	switch network {
	case "tcp":
		return "ip", true
	case "tcp4":
		return "ip4", true
	case "tcp6":
		return "ip6", true
	}
	return "", false
}

// hostOf returns the host in the address of a target.
func hostOf(t *Target) string {
	if host, _, err := net.SplitHostPort(t.Addr); err == nil {
		return host
	}
	return t.Addr
}

// An endpoint is a TCP address whose host must be looked up.
type endpoint struct {
	name hostName
	port uint16
}

// parseTarget parses the address of a target, without sending anything. lookup is false if there is
// nothing to look up.
func parseTarget(ctx context.Context, t *Target, r *net.Resolver) (e endpoint, lookup bool, err error) {
	network, ok := ipNetwork(t.Network)
	if !ok {
		return e, false, nil
	}
	host, service, err := net.SplitHostPort(t.Addr)
	if err != nil {
		return e, false, err
	}
	port, err := r.LookupPort(ctx, t.Network, service)
	if err != nil {
		return e, false, err
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return e, false, nil
	}
	return endpoint{hostName{network, host}, uint16(port)}, true, nil
}

// checkAddr refuses addresses that no peer can have, if package net either dials them or returns an error that does not
// show that another attempt is in vain.
func checkAddr(t *Target) error {
	if t.Addr == "" {
		return &net.AddrError{Err: "missing address"}
	}
	_, service, err := net.SplitHostPort(t.Addr)
	if _, ok := ipNetwork(t.Network); ok && err == nil && (service == "" || service == "0") {
		return &net.AddrError{Err: "port 0 is no port of a peer", Addr: t.Addr}
	}
	return nil
}

// at returns the endpoint with an address in place of the host.
func (e *endpoint) at(a netip.Addr) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(int(e.port)))
}

var errNothingWrong = errors.New("cm: nothing is wrong")

// checkConfig checks a configuration without sending anything, by a set-up that ends before it
// connects.
func checkConfig(ctx context.Context, rnic *iwarp.RNIC, network string, qc *iwarp.QPConfig) error {
	var c iwarp.QPConfig
	if qc != nil {
		c = *qc
	}
	c.SetupTrace = &iwarp.SetupTrace{Enter: func(_ context.Context, s iwarp.SetupStage) error {
		if s != iwarp.StageQP {
			return errNothingWrong
		}
		return nil
	}}
	_, err := rnic.Dial(ctx, network, "", &c)
	switch {
	case errors.Is(err, iwarp.ErrLimit) && exceeds(&c, rnic.Limits()):
		return err
	case errors.Is(err, errNothingWrong), errors.Is(err, iwarp.ErrLimit), errors.Is(err, iwarp.ErrCQTooSmall):
		return nil // whether there is room shows at the set-up itself
	}
	return err
}

// exceeds reports whether the limits never allow a QP of c, however much room there is.
func exceeds(c *iwarp.QPConfig, l iwarp.Limits) bool {
	return max(c.SendDepth, c.RecvDepth) > l.MaxQueueDepth || c.IRD > l.MaxIRD || c.ORD > l.MaxORD
}
