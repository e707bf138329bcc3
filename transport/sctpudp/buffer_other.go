//go:build !linux

package sctpudp

// enlarge requests large socket buffers; the system may give less.
func enlarge(c buffered) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
}
