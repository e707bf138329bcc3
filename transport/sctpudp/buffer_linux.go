package sctpudp

import "syscall"

// enlarge requests large socket buffers: beyond the system's limit if the process may
// (CAP_NET_ADMIN), otherwise up to net.core.rmem_max and wmem_max.
func enlarge(c buffered) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, socketBuffer)
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUFFORCE, socketBuffer)
	})
}
