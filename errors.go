package iwarp

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/transport"
)

// What went wrong, for errors.Is. Most errors carry more: see [TerminateError],
// [RejectError] and [PostError].
var (
	ErrFlushed     = errors.New("iwarp: work request flushed")
	ErrNoReceive   = errors.New("iwarp: no receive was posted")
	ErrAccess      = errors.New("iwarp: access right missing")
	ErrBounds      = errors.New("iwarp: outside the bounds of the region")
	ErrInvalidSTag = errors.New("iwarp: invalid STag")
	ErrRejected    = errors.New("iwarp: connection rejected by the peer")
	ErrUnsupported = errors.New("iwarp: not supported")
	ErrQueueFull   = errors.New("iwarp: queue full")
	ErrLimit       = errors.New("iwarp: limit reached")
	ErrWindowBound = errors.New("iwarp: memory windows are bound")
	ErrCQTooSmall  = errors.New("iwarp: the completion queue is too small")
)

// A TerminateError tells that a Terminate message ended the stream (RFC 5040
// section 4.8): Remote, if the peer found the error and sent it; otherwise this
// side found the error, and sent the Terminate if it still could.
//
// It matches ErrNoReceive, ErrAccess, ErrBounds, ErrInvalidSTag and ErrUnsupported (an
// operation that the receiver of the message does not know) as its code says, and, as
// every error of a QP that has ended, net.ErrClosed.
type TerminateError struct {
	Layer, Type, Code uint8 // RFC 6580 section 3
	Remote            bool
	Err               error // the particulars, if this side found the error
}

func newTerminateError(c transport.Code, remote bool, err error) *TerminateError {
	return &TerminateError{Layer: c.Layer(), Type: c.Type(), Code: c.Code(), Remote: remote, Err: err}
}

func (e *TerminateError) code() transport.Code {
	return transport.MakeCode(e.Layer, e.Type, e.Code)
}

func (e *TerminateError) Error() string {
	s := "iwarp: terminated: "
	if e.Remote {
		s = "iwarp: terminated by the peer: "
	}
	if e.code() == transport.DDPNoBuffer { // which to RFC 5041 is an invalid MSN
		s += plain(ErrNoReceive) + ": "
	}
	if e.Remote || e.Err == nil {
		return s + e.code().String()
	}
	return s + plain(e.Err)
}

// Unwrap returns the particulars and net.ErrClosed.
func (e *TerminateError) Unwrap() []error {
	if e.Err == nil {
		return []error{net.ErrClosed}
	}
	return []error{e.Err, net.ErrClosed}
}

// Is matches the sentinel that the code stands for.
func (e *TerminateError) Is(target error) bool {
	s := sentinelOf(e.code())
	return s != nil && s == target
}

func sentinelOf(c transport.Code) error {
	switch c {
	case transport.DDPNoBuffer:
		return ErrNoReceive
	case transport.RDMAPAccess, transport.RDMAPNotAssociated, transport.DDPNotAssociated:
		return ErrAccess
	case transport.RDMAPBounds, transport.RDMAPWrap, transport.DDPBounds, transport.DDPWrap, transport.DDPTooLong:
		return ErrBounds
	case transport.RDMAPInvalidSTag, transport.DDPInvalidSTag:
		return ErrInvalidSTag
	case transport.RDMAPOpcode:
		return ErrUnsupported
	}
	return nil
}

// A RejectError tells that the peer refused the connection, and what it said with
// the refusal. IRD and ORD are what the peer would have needed, -1 if it did not
// say (RFC 6581 section 9.1). It matches ErrRejected.
type RejectError struct {
	PrivateData []byte
	IRD, ORD    int
}

func (e *RejectError) Error() string {
	s := fmt.Sprintf("%v, with %d octets of private data", ErrRejected, len(e.PrivateData))
	if e.IRD >= 0 || e.ORD >= 0 {
		s += fmt.Sprintf(" (IRD %s, ORD %s)", depth(e.IRD), depth(e.ORD))
	}
	return s
}

// depth is what the peer said of an IRD or ORD.
func depth(n int) string {
	if n < 0 {
		return "not told"
	}
	return strconv.Itoa(n)
}

// Is matches ErrRejected.
func (e *RejectError) Is(target error) bool { return target == ErrRejected }

// A PostError tells how many work requests of a list were queued before one was
// refused; the refused one and those behind it changed nothing.
type PostError struct {
	N   int
	Err error
}

func (e *PostError) Error() string {
	return fmt.Sprintf("iwarp: work request %d refused: %s", e.N, plain(e.Err))
}

func (e *PostError) Unwrap() error { return e.Err }

// endError is the first cause of a QP's end; everything that the QP answers from
// then on wraps it and net.ErrClosed.
type endError struct{ cause error }

func (e *endError) Error() string {
	var f *transport.Fault
	if errors.As(e.cause, &f) && f.Code == transport.MPAConnectionLost && f.Err != nil {
		return "iwarp: connection lost: " + plain(f.Err)
	}
	return "iwarp: queue pair closed: " + plain(e.cause)
}

func (e *endError) Unwrap() []error { return []error{e.cause, net.ErrClosed} }

// ended makes cause wrap net.ErrClosed, unless it already does.
func ended(cause error) error {
	if errors.Is(cause, net.ErrClosed) {
		return cause
	}
	return &endError{cause}
}

// faultError turns an error of the layers below into the TerminateError that
// stands for it, or returns nil if the error has no code.
func faultError(err error) *TerminateError {
	var f *transport.Fault
	if !errors.As(err, &f) {
		return nil
	}
	return newTerminateError(f.Code, false, err)
}

// rejection translates the refusal of the peer's application.
func rejection(err error) error {
	var rej *setup.RejectError
	if errors.As(err, &rej) {
		return &RejectError{PrivateData: rej.PrivateData, IRD: rej.IRD, ORD: rej.ORD}
	}
	return err
}

// A clause is an error whose text stands behind a colon of ours: without the name of a
// package in front.
type clause struct{ error }

func (c clause) Error() string { return plain(c.error) }
func (c clause) Unwrap() error { return c.error }

func plain(err error) string { return errtext.Plain(err) }
