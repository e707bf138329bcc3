//go:build !linux

package incast

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
