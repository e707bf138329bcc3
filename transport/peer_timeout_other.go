//go:build !linux

package transport

import (
	"net"
	"time"
)

// setUserTimeout does nothing: this system has no such bound.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
