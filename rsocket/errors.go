package rsocket

import (
	"errors"
	"io"
	"net"
	"syscall"
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

// opError is the error of a method of Conn. io.EOF stays as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.EOF is never wrapped here
		return err
	}
	return &net.OpError{Op: op, Net: "rsocket", Source: c.local, Addr: c.remote, Err: err}
}
