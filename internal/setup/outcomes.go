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

// Outcomes returns how many connections of initiators were refused, and how many of this side failed.
func (m *Manager) Outcomes() (refused, failed counters.Setups) {
	for c := range refused {
		refused[c], failed[c] = m.outcomes.refused[c].Load(), m.outcomes.failed[c].Load()
	}
	return refused, failed
}

// refuse counts an initiator whose connection was not established; nil: it was.
func (m *Manager) refuse(err error) {
	if err != nil {
		m.outcomes.refused[m.causeOf(err)].Add(1)
	}
}

// fail counts a connection of this side that was not established; nil: it was.
func (m *Manager) fail(err error) {
	if err != nil {
		m.outcomes.failed[m.causeOf(err)].Add(1)
	}
}

// A tlsFailure is the error of a handshake.
type tlsFailure struct{ error }

func (e tlsFailure) Unwrap() error { return e.error }

// sorts tell why there is no connection, the first of them that knows.
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
	// A set-up that the program has cancelled has lost its connection by that.
	{counters.CauseOther, func(_ *Manager, err error) bool { return errors.Is(err, context.Canceled) }},
	{counters.CauseConnection, func(_ *Manager, err error) bool { return NoConnection(err) || errors.Is(err, net.ErrClosed) }},
}

// FailedTLS reports whether the handshake of TLS has failed, or the peer alone uses TLS. Package tls has no type for most of its errors.
func FailedTLS(err error) bool {
	return is[tlsFailure](err) || is[tls.RecordHeaderError](err) || errors.Is(err, mpa.ErrTLS) || refusedByTLS(err) != nil
}

// NoConnection reports whether there was no connection, or it was lost, or the peer has ended it without an answer. The errors of an
// association of SCTP that has ended are those of the system.
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

// is reports whether the chain of err has an E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// codeOf returns the code of the Fault in the chain of err, 0 without one.
func codeOf(err error) transport.Code {
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		return f.Code
	}
	return 0
}
