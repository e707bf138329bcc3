//go:build !unix

package peer

import "time"

// CPU returns 0: the processor time is not known here.
func CPU() time.Duration { return 0 }
