//go:build !linux || purego

package transport

import (
	"errors"
	"time"
)

// SetAlarm has f called once after d, where there are connections to watch.
func (p *Poller) SetAlarm(time.Duration, func()) error { return errors.ErrUnsupported }
