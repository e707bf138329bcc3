//go:build !unix

package transport

import "math"

// MaxFiles returns how many file descriptors the process may have. This system has no known
// limit.
func MaxFiles() int { return math.MaxInt }

func fileLimit() string { return "" }
