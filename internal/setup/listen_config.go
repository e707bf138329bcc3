package setup

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// A ListenConfig describes how the connections of initiators are treated. All fields are set, except
// those that may be nil.
type ListenConfig struct {
	SetupTimeout    time.Duration // for TLS and the whole Request, and for sending the answer
	ProgressTimeout time.Duration // for the next octet of an unfinished Request
	MaxHalfOpen     int           // connections in set-up, including those that await an answer
	TLS             *tls.Config   // nil: no TLS

	// Admit is called with the remote address of each connection of a Listener, before any of its
	// octets is read, by one goroutine. If it returns an error, the connection is closed without a
	// reply. Over SCTP, where an association has many sessions, Admit is called for each session
	// before its message is examined, and a Terminate ends a session. nil: all are admitted.
	Admit func(remote net.Addr) error
	// Seal returns the Sealer that authenticates a connection whose Request is complete. The
	// Sealer opens the Request, before the Request is handed on, and wraps the answer. If Seal
	// fails, the connection is closed without a reply. Refusals here are logged at debug level
	// only. nil: connections are not authenticated.
	Seal func(ctx context.Context, a Arrival) (Sealer, error)
}

const (
	defaultSetupTimeout    = 5 * time.Second
	defaultProgressTimeout = 2 * time.Second
)

// Complete returns a copy of lc in which defaults replace zero fields, and checks it against the
// limits. A nil lc means all defaults.
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
