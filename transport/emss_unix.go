//go:build unix

package transport

import (
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// timestampsSize is the length of the TCP option of RFC 7323, with its padding.
const timestampsSize = 12

// segmentSize asks the kernel how many octets it puts into one segment.
func segmentSize(c *net.TCPConn) (size int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	if raw.Control(func(fd uintptr) {
		size, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	}) != nil || err != nil || size <= 0 {
		return 0, false
	}
	if runtime.GOOS == "freebsd" { // does not deduct the option, which it uses by default
		size -= timestampsSize
	}
	return size, true
}
