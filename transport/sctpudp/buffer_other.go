//go:build !linux

package sctpudp

import "net"

// enlarge asks for large socket buffers; the system may give less.
func enlarge(c *net.UDPConn) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
}
