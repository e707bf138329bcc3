//go:build !linux || purego

package transport

import "net"

// HasRawTCP reports whether this build supports PathRawTCP.
const HasRawTCP = false

// newRawStream returns nil: this build does not support PathRawTCP.
func newRawStream(*net.TCPConn, *Poller) Stream { return nil }
