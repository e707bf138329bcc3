//go:build !linux

package sctpudp

import "net"

// hearRefusals does nothing: who sends where nobody listens hears of it by silence.
func hearRefusals(net.PacketConn, bool) {}

func refusals(net.PacketConn, func([]byte)) {}
