package iwarp

import (
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// Errors to use with errors.Is. Most errors that match one of them have more details: see
// [TerminateError], [RejectError] and [PostError].
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

	// ErrDispatchTimeout says that an RDMA Read was not sent, because the window of its Solicitor
	// did not admit it within the dispatch timeout. The QP has not ended.
	ErrDispatchTimeout = errors.New("iwarp: dispatch timeout: no part of the Solicitor's window was free")
)

// A TerminateError reports that a Terminate message ended the stream (RFC 5040 section 4.8).
// If Remote is set, the peer found the error and sent the message. Otherwise this side found
// the error, and sent the message if it still could.
//
// Depending on its code it matches ErrNoReceive, ErrAccess, ErrBounds, ErrInvalidSTag or
// ErrUnsupported (the receiver of a message does not support the operation). Like every error
// of a QP that has ended it matches net.ErrClosed.
type TerminateError struct {
	Layer, Type, Code uint8 // RFC 6580 section 3
	Remote            bool
	Err               error // details, if this side found the error
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
	if e.code() == transport.DDPNoBuffer { // RFC 5041 calls it an invalid MSN
		s += errtext.Plain(ErrNoReceive) + ": "
	}
	if e.Remote || e.Err == nil {
		return s + e.code().String()
	}
	return s + errtext.Plain(e.Err)
}

// Unwrap returns Err and net.ErrClosed.
func (e *TerminateError) Unwrap() []error {
	if e.Err == nil {
		return []error{net.ErrClosed}
	}
	return []error{e.Err, net.ErrClosed}
}

// Is reports whether target is the sentinel error for the code.
func (e *TerminateError) Is(target error) bool {
	return target != nil && sentinelOf(e.code()) == target
}

func sentinelOf(c transport.Code) error {
	switch c {
	case transport.DDPNoBuffer:
		return ErrNoReceive
	case transport.RDMAPAccess, transport.RDMAPNotAssociated, transport.RDMAPProtNoInvalidate, transport.DDPNotAssociated:
		return ErrAccess
	case transport.RDMAPBounds, transport.RDMAPWrap, transport.DDPBounds, transport.DDPWrap, transport.DDPTooLong:
		return ErrBounds
	case transport.RDMAPInvalidSTag, transport.RDMAPOpNoInvalidate, transport.DDPInvalidSTag:
		return ErrInvalidSTag
	case transport.RDMAPOpcode:
		return ErrUnsupported
	}
	return nil
}

// A RejectError reports that the peer rejected the connection. PrivateData is the private data
// of its reply. IRD and ORD are the values that the peer would have required, or -1 if it did
// not send them (RFC 6581 section 9.1). A RejectError matches ErrRejected.
type RejectError struct {
	PrivateData []byte
	IRD, ORD    int
}

func (e *RejectError) Error() string {
	s := fmt.Sprintf("%v, with %d octets of private data", ErrRejected, len(e.PrivateData))
	if e.IRD >= 0 || e.ORD >= 0 {
		s += fmt.Sprintf(" (IRD %s, ORD %s)", errtext.Depth(e.IRD), errtext.Depth(e.ORD))
	}
	return s
}

// Is reports whether target is ErrRejected.
func (e *RejectError) Is(target error) bool { return target == ErrRejected }

// A PostError reports that a work request of a list was refused. The N requests before it were
// queued; the refused request and those after it had no effect.
type PostError struct {
	N   int
	Err error
}

func (e *PostError) Error() string {
	return fmt.Sprintf("iwarp: work request %d refused: %s", e.N, errtext.Plain(e.Err))
}

func (e *PostError) Unwrap() error { return e.Err }

// faultError converts an error of a lower layer to a TerminateError. It returns nil if the
// error has no code.
func faultError(err error) *TerminateError {
	f, ok := errors.AsType[*transport.Fault](err)
	if !ok {
		return nil
	}
	if errors.Is(err, rdmap.ErrGate) {
		err = fmt.Errorf("%w: %w", ErrAuth, errtext.Clause(err))
	}
	return newTerminateError(f.Code, false, err)
}

// rejection converts the rejection by the peer's application to a RejectError.
func rejection(err error) error {
	if rej, ok := errors.AsType[*setup.RejectError](err); ok {
		return &RejectError{PrivateData: rej.PrivateData, IRD: rej.IRD, ORD: rej.ORD}
	}
	return err
}
