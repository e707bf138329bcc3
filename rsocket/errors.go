package rsocket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// ErrProtocol is matched by the errors of a connection that has ended because the peer violated the
// protocol.
var ErrProtocol = errors.New("rsocket: the peer does not keep to the protocol")

var (
	errReset     error = syscall.ECONNRESET // the peer has disconnected
	errNoWriting       = io.ErrClosedPipe   // after CloseWrite
	errNoMessage       = errors.New("immediate data in place of a message")

	errReadCount  = errors.New("rsocket: invalid read result of the reader")
	errWriteCount = errors.New("rsocket: invalid write result of the writer")
)

// A lostError is the reason why the peer or the network ended the connection. Unlike the error of the QP it does not match
// net.ErrClosed, which tells the user of a net.Conn that this side has closed it, and is no failure.
type lostError struct{ cause error }

func (e lostError) Error() string { return e.cause.Error() }
func (e lostError) Is(target error) bool {
	return target != net.ErrClosed && errors.Is(e.cause, target)
}
func (e lostError) As(target any) bool { return errors.As(e.cause, target) }

// endOf returns the error of a Conn whose QP has ended with err. If err wraps net.ErrClosed and nothing else, this side has ended the
// connection, for example by closing the RNIC.
func endOf(err error) error {
	if err == nil || errors.Unwrap(err) == net.ErrClosed { //nolint:errorlint // an error that wraps more reports a loss
		return err
	}
	return lostError{err}
}

// opError returns err as a method of Conn reports it. io.EOF stays as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.EOF is never wrapped here
		return err
	}
	return &net.OpError{Op: op, Net: "rsocket", Source: c.local, Addr: c.remote, Err: tellsTimeout(err)}
}

// A timeoutError makes net.OpError.Timeout report true. Timeout inspects the error itself, and nothing that it wraps.
type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }
func (timeoutError) Timeout() bool   { return true }

// tellsTimeout returns err such that net.OpError.Timeout reports true for a deadline, and for a peer that no longer answers.
func tellsTimeout(err error) error {
	if err == os.ErrDeadlineExceeded { //nolint:errorlint // it has a Timeout method of its own, and a Temporary method
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || sockerr.Is(err, syscall.ETIMEDOUT) {
		return timeoutError{err}
	}
	return err
}
