package cm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"github.com/goiwarp/iwarp"
)

// ipNetwork is the network in which a name is looked up; false: names of network are not
// looked up here.
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

// hostOf is what of a target is its host.
func hostOf(t *Target) string {
	if host, _, err := net.SplitHostPort(t.Addr); err == nil {
		return host
	}
	return t.Addr
}

// An endpoint is an address of TCP whose host has to be looked up.
type endpoint struct {
	name hostName
	port uint16
}

// parseTarget reads the address of a target, without sending anything. lookup is false where there
// is nothing to look up.
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

// checkAddr refuses addresses that no peer can have, and that package net dials, or for which its error does not
// tell that another attempt is in vain.
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

// at is the endpoint at one of its addresses.
func (e *endpoint) at(a netip.Addr) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(int(e.port)))
}

var errNothingWrong = errors.New("cm: nothing is wrong")

// checkConfig finds out what is wrong with a configuration without sending anything: by a
// set-up that ends before it connects.
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
		return nil // what there is room for shows when it is taken
	}
	return err
}

// exceeds reports whether no QP of c can ever be made, however much room there is.
func exceeds(c *iwarp.QPConfig, l iwarp.Limits) bool {
	return max(c.SendDepth, c.RecvDepth) > l.MaxQueueDepth || c.IRD > l.MaxIRD || c.ORD > l.MaxORD
}
