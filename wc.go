package iwarp

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A Status is the result of a work request. The numbers are those of ibv_wc_status.
type Status = rdmap.Status

// The statuses of a WC.
const (
	StatusSuccess         = rdmap.StatusSuccess
	StatusLocalLength     = rdmap.StatusLocalLength     // a message was too long for its receive
	StatusLocalOp         = rdmap.StatusLocalOp         // the QP cannot do this (an RDMA Read with ORD 0), or its source or sink, a Buffer, failed
	StatusLocalProtection = rdmap.StatusLocalProtection // a region was invalidated or closed before its use
	StatusFlushed         = rdmap.StatusFlushed         // the QP ended first
	StatusBind            = rdmap.StatusBind            // a bind, a registration or a local invalidate was refused
	StatusBadResponse     = rdmap.StatusBadResponse     // an RDMA Read Response or Atomic Response did not match
	StatusLocalAccess     = rdmap.StatusLocalAccess     // the receive's region was invalidated or closed
	StatusRemoteInvalid   = rdmap.StatusRemoteInvalid   // the peer could not interpret the request
	StatusRemoteAccess    = rdmap.StatusRemoteAccess    // the peer's memory does not allow the access
	StatusRemoteOp        = rdmap.StatusRemoteOp        // the peer failed to perform the operation
	StatusNoReceive       = rdmap.StatusNoReceive       // the peer had no receive posted
	StatusTimeout         = rdmap.StatusTimeout         // the window of the Solicitor did not admit an RDMA Read in time
)

// sentinelOfStatus returns the sentinel error for a status, or nil if there is none.
func sentinelOfStatus(s Status) error {
	switch s {
	case StatusFlushed:
		return ErrFlushed
	case StatusNoReceive:
		return ErrNoReceive
	case StatusLocalLength:
		return ErrBounds
	case StatusLocalProtection, StatusLocalAccess:
		return ErrInvalidSTag
	default:
		return nil
	}
}

// A WC is a work completion. If Status is not StatusSuccess only ID, QP, Op, Status, Vendor
// and CommitStatus are valid.
type WC struct {
	ID     uint64
	QP     *QP // possibly before Accept, Dial or Client has returned it: see QP.UserData
	Op     Op
	Status Status
	Flags  Flags     // Solicited: the message requested a solicited event
	Len    uint32    // octets of the message received, or moved by the request
	Imm    [8]byte   // OpRecvImm: the Immediate Data; Len is 0
	Old    uint64    // an atomic operation: the previous value; Len is 8
	STag   stag.STag // if not 0: the local STag that the message has invalidated
	Vendor uint32    // after an error: the first word of the Terminate, or 0

	// CommitStatus is the peer's answer to a Commit, a [commit.Status]. If it is not 0 the
	// Commit has failed, with StatusRemoteOp, but the QP remains usable.
	CommitStatus uint32
}

// Err returns nil for a success. Otherwise the error wraps net.ErrClosed, the sentinel error
// for Status, and the first cause of the QP's end. The error of a Commit that the peer could
// not perform wraps only a *[commit.Error], and that of an RDMA Read with StatusTimeout only
// ErrDispatchTimeout, because the QP has not ended.
func (wc *WC) Err() error {
	if wc.Status == StatusSuccess {
		return nil
	}
	if wc.Status == StatusTimeout {
		return fmt.Errorf("iwarp: %v: %w", wc.Op, errtext.Clause(ErrDispatchTimeout))
	}
	if err := commit.Status(wc.CommitStatus).Err(); err != nil {
		return fmt.Errorf("iwarp: %v: %w", wc.Op, errtext.Clause(err))
	}
	return &workError{op: wc.Op, status: wc.Status, vendor: wc.Vendor, cause: wc.QP.Err()}
}

type workError struct {
	op     Op
	status Status
	vendor uint32
	cause  error // may be nil
}

func (e *workError) Error() string {
	s := fmt.Sprintf("iwarp: %v: %v", e.op, e.status)
	if e.cause != nil {
		return s + ": " + errtext.Plain(e.cause)
	}
	return s
}

func (e *workError) Unwrap() []error {
	var errs []error
	if s := sentinelOfStatus(e.status); s != nil {
		errs = append(errs, s)
	}
	if e.status == StatusRemoteAccess || e.status == StatusRemoteInvalid {
		if s := sentinelOf(transport.Code(e.vendor >> 16)); s != nil {
			errs = append(errs, s)
		}
	}
	if e.status == StatusLocalOp && errors.Is(e.cause, rdmap.ErrNoReads) {
		errs = append(errs, ErrUnsupported)
	}
	return append(errs, cmp.Or(e.cause, net.ErrClosed)) // a graceful end has no cause
}
