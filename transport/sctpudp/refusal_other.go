//go:build !linux

package sctpudp

import "net"

// hearRefusals does nothing: a dial to a closed port ends when all its attempts have
// remained unanswered.
func hearRefusals(net.PacketConn, bool) {}

func refusals(net.PacketConn, func([]byte)) {}
