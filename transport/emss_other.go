//go:build !unix

package transport

import "net"

// segmentSize returns false: Windows documents no way to ask.
func segmentSize(*net.TCPConn) (size int, ok bool) { return 0, false }
