//go:build !linux || purego

package transport

import "net"

// newRawStream returns nil: this build has no raw path.
func newRawStream(*net.TCPConn, *Poller) Stream { return nil }
