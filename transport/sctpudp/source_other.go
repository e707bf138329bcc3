//go:build !linux

package sctpudp

import (
	"net"
	"net/netip"
)

// hearAddresses reports false: packets leave from the address that the system chooses.
func hearAddresses(net.PacketConn) bool { return false }

func addressOf([]byte) netip.Addr { return netip.Addr{} }

func leaveFrom(netip.Addr) []byte { return nil }
