package setup

import (
	"crypto/tls"
	"fmt"
	"time"
)

// A ListenConfig says how the connections of initiators are treated. All of it but TLS is
// set.
type ListenConfig struct {
	SetupTimeout    time.Duration // for TLS and the whole Request, and for the answer to leave
	ProgressTimeout time.Duration // for the next octet of an unfinished Request
	MaxHalfOpen     int           // connections in set-up, those without an answer included
	TLS             *tls.Config   // nil: no TLS
}

const (
	defaultSetupTimeout    = 5 * time.Second
	defaultProgressTimeout = 2 * time.Second
)

// Complete checks lc, in which zero fields mean defaults, as nil does, against the limits, and
// fills it in.
func (m *Manager) Complete(lc *ListenConfig) (ListenConfig, error) {
	var c ListenConfig
	if lc != nil {
		c = *lc
	}
	if c.SetupTimeout == 0 {
		c.SetupTimeout = defaultSetupTimeout
	}
	if c.ProgressTimeout == 0 {
		c.ProgressTimeout = min(defaultProgressTimeout, c.SetupTimeout)
	}
	if c.MaxHalfOpen == 0 {
		c.MaxHalfOpen = m.cfg.MaxHalfOpen
	}
	if c.SetupTimeout < 0 || c.ProgressTimeout < 0 || c.MaxHalfOpen < 0 {
		return c, fmt.Errorf("iwarp: ListenConfig.SetupTimeout is %v, ProgressTimeout %v and MaxHalfOpen %d, and none may be negative",
			c.SetupTimeout, c.ProgressTimeout, c.MaxHalfOpen)
	}
	if c.MaxHalfOpen > m.cfg.MaxHalfOpen {
		return c, fmt.Errorf("%w: ListenConfig.MaxHalfOpen is %d, at most %d", m.cfg.Limit, c.MaxHalfOpen, m.cfg.MaxHalfOpen)
	}
	return c, nil
}
