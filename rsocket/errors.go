package rsocket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// ErrProtocol is matched by the errors of a connection that has ended because the peer does not keep
// to the protocol.
var ErrProtocol = errors.New("rsocket: the peer does not keep to the protocol")

var (
	errReset     error = syscall.ECONNRESET // the peer has disconnected
	errNoWriting       = io.ErrClosedPipe   // after CloseWrite
	errNoMessage       = errors.New("immediate data in place of a message")

	errReadCount  = errors.New("rsocket: invalid read result of the reader")
	errWriteCount = errors.New("rsocket: invalid write result of the writer")
)

// A lostError is why the peer or the network has ended the connection. It does not match net.ErrClosed, as the error of the QP does: to
// the user of a net.Conn that one is of a Conn that this side has closed, and no failure.
type lostError struct{ cause error }

func (e lostError) Error() string { return e.cause.Error() }
func (e lostError) Is(target error) bool {
	return target != net.ErrClosed && errors.Is(e.cause, target)
}
func (e lostError) As(target any) bool { return errors.As(e.cause, target) }

// endOf is the error of a Conn whose QP has ended with err. One that wraps net.ErrClosed and nothing else is of an end on this side, by the RNIC
// for example.
func endOf(err error) error {
	if err == nil || errors.Unwrap(err) == net.ErrClosed { //nolint:errorlint // an error that wraps more is that of a loss
		return err
	}
	return lostError{err}
}

// opError is the error of a method of Conn. io.EOF stays as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.EOF is never wrapped here
		return err
	}
	return &net.OpError{Op: op, Net: "rsocket", Source: c.local, Addr: c.remote, Err: tellsTimeout(err)}
}

// A timeoutError is one for which net.OpError.Timeout reports true. That looks at the error itself, and at nothing that it wraps.
type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }
func (timeoutError) Timeout() bool   { return true }

// tellsTimeout is err as net.OpError.Timeout wants it: of a deadline, and of a peer that does not answer any more, it tells.
func tellsTimeout(err error) error {
	if err == os.ErrDeadlineExceeded { //nolint:errorlint // it tells itself, and also that it is temporary
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || sockerr.Is(err, syscall.ETIMEDOUT) {
		return timeoutError{err}
	}
	return err
}
