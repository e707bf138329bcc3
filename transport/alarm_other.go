//go:build !linux || purego

package transport

import (
	"errors"
	"time"
)

// SetAlarm is not supported by this build.
func (p *Poller) SetAlarm(time.Duration, func()) error { return errors.ErrUnsupported }
