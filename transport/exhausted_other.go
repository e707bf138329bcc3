//go:build !unix

package transport

import "math"

// MaxFiles is how many file descriptors the process may have. There is no limit here that
// is known.
func MaxFiles() int { return math.MaxInt }

func fileLimit() string { return "" }
