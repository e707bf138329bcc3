package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// The exit statuses, which StatusHelp documents.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	Unconnected = 3
	Interrupted = 130
)

// StatusHelp documents the exit statuses.
const StatusHelp = `  0    done
  1    failed: a target was missed, data differ, a file or a port cannot be opened
  2    called wrongly: an unknown command or flag, a value that is not allowed
  3    no connection: the peer is not reached, does not speak iWARP, refuses, or has gone
  130  interrupted by Ctrl-C`

// A UsageError says that a command was called wrongly.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return UsageError(fmt.Sprintf(format, args...)) }

// ErrUnconnected gives an error that wraps it the status Unconnected, if its cause does not.
var ErrUnconnected = errors.New("no connection")

// OfConnection marks err, if it is the end of a stream, as the end of a connection, and not of a file.
func OfConnection(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return endedError{err}
	}
	return err
}

// An endedError is the error of a connection that the peer has ended.
type endedError struct{ error }

func (e endedError) Unwrap() error        { return e.error }
func (e endedError) Is(target error) bool { return target == net.ErrClosed }

// ErrInterrupted is the error of a command that has read Ctrl-C from its terminal. The status is Interrupted.
var ErrInterrupted = errors.New("interrupted")

// An interruptedError is the error of a command that was interrupted.
type interruptedError struct{ error }

func (e interruptedError) Unwrap() error { return e.error }
