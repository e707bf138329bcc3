//go:build !linux || purego

package transport

import "net"

// HasRawTCP tells whether this build has the path PathRawTCP.
const HasRawTCP = false

// newRawStream returns nil: this build has no raw path.
func newRawStream(*net.TCPConn, *Poller) Stream { return nil }
