package qpconn

import (
	"errors"
	"net"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/transport"
)

// endError wraps the first cause of the end of a queue pair. All errors that the queue pair
// returns afterwards wrap that cause and net.ErrClosed.
type endError struct{ cause error }

func (e *endError) Error() string {
	if f, ok := errors.AsType[*transport.Fault](e.cause); ok && f.Code == transport.MPAConnectionLost && f.Err != nil {
		return "iwarp: connection lost: " + errtext.Plain(f.Err)
	}
	return "iwarp: queue pair closed: " + errtext.Plain(e.cause)
}

func (e *endError) Unwrap() []error { return []error{e.cause, net.ErrClosed} }

// EndError returns an error that wraps both the cause of the end of a queue pair and net.ErrClosed.
func EndError(cause error) error {
	if errors.Is(cause, net.ErrClosed) {
		return cause
	}
	return &endError{cause}
}
