package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/sockerr"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// outcomes counts connections that were not established.
type outcomes struct {
	refused, failed [counters.Causes]atomic.Uint64
}

// Outcomes returns how many connections from initiators were refused, and how many that this side requested failed.
func (m *Manager) Outcomes() (refused, failed counters.Setups) {
	for c := range refused {
		refused[c], failed[c] = m.outcomes.refused[c].Load(), m.outcomes.failed[c].Load()
	}
	return refused, failed
}

// refuse counts a connection from an initiator that was not established because of err; nil: it was established.
func (m *Manager) refuse(err error) {
	if err != nil {
		m.outcomes.refused[m.causeOf(err)].Add(1)
	}
}

// fail counts a connection that this side requested and that was not established because of err; nil: it was established.
func (m *Manager) fail(err error) {
	if err != nil {
		m.outcomes.failed[m.causeOf(err)].Add(1)
	}
}

// A tlsFailure is the error of a TLS handshake.
type tlsFailure struct{ error }

func (e tlsFailure) Unwrap() error { return e.error }

// sorts classify errors: the first entry that matches is the cause.
var sorts = [...]struct {
	cause counters.Cause
	is    func(m *Manager, err error) bool
}{
	{counters.CauseEvicted, func(_ *Manager, err error) bool { return errors.Is(err, errEvicted) || errors.Is(err, sctp.ErrGivenUp) }},
	{counters.CauseNoProgress, func(_ *Manager, err error) bool { return errors.Is(err, errNoProgress) }},
	{counters.CauseAuthentication, func(m *Manager, err error) bool { return isAuthError(err) || errors.Is(err, m.cfg.Auth) }},
	{counters.CauseRejected, func(_ *Manager, err error) bool { return is[*RejectError](err) }},
	{counters.CauseTimeout, func(_ *Manager, err error) bool {
		return errors.Is(err, errSetupTimeout) || errors.Is(err, context.DeadlineExceeded)
	}},
	{counters.CauseTLS, func(_ *Manager, err error) bool { return FailedTLS(err) }},
	{counters.CauseMalformed, func(_ *Manager, err error) bool {
		return codeOf(err) == transport.MPAStartup || is[*sctp.ViolationError](err)
	}},
	// If the application cancels a set-up, the connection is lost as a result.
	{counters.CauseOther, func(_ *Manager, err error) bool { return errors.Is(err, context.Canceled) }},
	{counters.CauseConnection, func(_ *Manager, err error) bool { return NoConnection(err) || errors.Is(err, net.ErrClosed) }},
}

// FailedTLS reports whether the TLS handshake has failed, or only the peer uses TLS. Package tls has no type for most of its errors.
func FailedTLS(err error) bool {
	return is[tlsFailure](err) || is[tls.RecordHeaderError](err) || errors.Is(err, mpa.ErrTLS) || refusedByTLS(err) != nil
}

// NoConnection reports whether there was no connection, or it was lost, or the peer has ended it without an answer. An SCTP
// association that has ended returns errors of the operating system.
func NoConnection(err error) bool {
	return codeOf(err) == transport.MPAConnectionLost || is[*net.OpError](err) || errors.Is(err, sctp.ErrRefused) ||
		sockerr.Is(err, syscall.ECONNRESET) || sockerr.Is(err, syscall.ETIMEDOUT)
}

// causeOf returns the counter of err.
func (m *Manager) causeOf(err error) counters.Cause {
	for _, s := range sorts {
		if s.is(m, err) {
			return s.cause
		}
	}
	return counters.CauseOther
}

// is reports whether the chain of err contains an E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// codeOf returns the code of the Fault in the chain of err, or 0 if there is none.
func codeOf(err error) transport.Code {
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		return f.Code
	}
	return 0
}
