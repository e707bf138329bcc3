//go:build !linux

package transport

import (
	"net"
	"time"
)

// setUserTimeout does nothing: this system does not support such a bound.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
