//go:build !linux

package bottleneck

import "time"

// Sleep is time.Sleep here.
func Sleep(d time.Duration) { time.Sleep(d) }
