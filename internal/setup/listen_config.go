package setup

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// A ListenConfig says how the connections of initiators are treated. All of it is set, but for
// what may be nil.
type ListenConfig struct {
	SetupTimeout    time.Duration // for TLS and the whole Request, and for the answer to leave
	ProgressTimeout time.Duration // for the next octet of an unfinished Request
	MaxHalfOpen     int           // connections in set-up, those without an answer included
	TLS             *tls.Config   // nil: no TLS

	// Admit is asked about the remote address of each connection of a Listener before an octet of
	// it is read, by one goroutine. An error has it closed without a reply; of SCTP, where
	// an association has many sessions, it is a session of which nothing was looked at, and a
	// Terminate ends it. nil: all are admitted.
	Admit func(remote net.Addr) error
	// Seal returns what authenticates a connection whose Request is complete. That opens the
	// Request, before the Request is handed on, and wraps the answer. An error has the
	// connection closed without a reply. Those that are refused here are no news for the log.
	// nil: connections are not authenticated.
	Seal func(ctx context.Context, a Arrival) (Sealer, error)
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
	if c.SetupTimeout < 0 || c.ProgressTimeout < 0 || c.MaxHalfOpen < 0 {
		return c, fmt.Errorf("iwarp: ListenConfig.SetupTimeout is %v, ProgressTimeout %v and MaxHalfOpen %d, and none may be negative",
			c.SetupTimeout, c.ProgressTimeout, c.MaxHalfOpen)
	}
	c.SetupTimeout = cmp.Or(c.SetupTimeout, defaultSetupTimeout)
	c.ProgressTimeout = cmp.Or(c.ProgressTimeout, min(defaultProgressTimeout, c.SetupTimeout))
	c.MaxHalfOpen = cmp.Or(c.MaxHalfOpen, m.cfg.MaxHalfOpen)
	if c.MaxHalfOpen > m.cfg.MaxHalfOpen {
		return c, fmt.Errorf("%w: ListenConfig.MaxHalfOpen is %d, at most %d", m.cfg.Limit, c.MaxHalfOpen, m.cfg.MaxHalfOpen)
	}
	return c, nil
}
