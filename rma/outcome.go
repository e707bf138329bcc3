package rma

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// An Outcome is how an operation ended.
type Outcome uint16

// The outcomes. The first five are those of 1RMA.
const (
	OK              = Outcome(op.OK)
	RemoteAuth      = Outcome(op.RemoteAuth)      // the key is wrong; no effect
	NACK            = Outcome(op.NACK)            // the server refuses the operation for now; no effect
	Timeout         = Outcome(op.Timeout)         // no answer in time; a write has taken effect, or never will
	DispatchTimeout = Outcome(op.DispatchTimeout) // it waited too long on this side, or found no memory there; no effect
	Bounds          = Outcome(op.Bounds)          // outside of the region; no effect
	RemoteError     = Outcome(op.RemoteError)     // the Buffer of the region has failed; the effect is unknown
	Conflict        = Outcome(op.Conflict)        // of a Rekey: not the next epoch; no effect
	Closed          = Outcome(op.Closed)          // the connection was gone before it could have an effect

	Outcomes = op.Outcomes // how many there are
)

var outcomeNames = [...]string{
	OK: "done", RemoteAuth: "remote authentication failure", NACK: "refused by the server", Timeout: "timeout",
	DispatchTimeout: "dispatch timeout", Bounds: "outside of the region", RemoteError: "failure of the remote memory",
	Conflict: "not the next epoch", Closed: "connection closed",
}

func (o Outcome) String() string { return names.Of(o, outcomeNames[:], "outcome %d") }

// NoEffect reports whether an operation with this outcome has changed nothing, and never will.
func (o Outcome) NoEffect() bool { return op.Outcome(o).NoEffect() }

// The errors that an OpError matches, one for each Outcome. An OpError with the Outcome Closed matches
// net.ErrClosed.
var (
	ErrRemoteAuth      = errors.New("rma: remote authentication failure")
	ErrNACK            = errors.New("rma: refused by the server")
	ErrTimeout         = errors.New("rma: timeout")
	ErrDispatchTimeout = errors.New("rma: dispatch timeout")
	ErrBounds          = errors.New("rma: outside of the region")
	ErrRemote          = errors.New("rma: failure of the remote memory")
	ErrConflict        = errors.New("rma: not the next epoch")
)

var outcomeErrors = [...]error{
	RemoteAuth: ErrRemoteAuth, NACK: ErrNACK, Timeout: ErrTimeout, DispatchTimeout: ErrDispatchTimeout,
	Bounds: ErrBounds, RemoteError: ErrRemote, Conflict: ErrConflict, Closed: net.ErrClosed,
}

// Reasons of RemoteAuth, and of NACK: OpError.Reason.
const (
	StaleEpoch = uint16(op.StaleEpoch) // the region has another key now: open it again
	BadKey     = uint16(op.BadKey)     // wrong key, unknown region, or a right that was not granted
	BadData    = uint16(op.BadData)    // the data are not those that were sealed

	QueueFull = uint16(op.QueueFull) // too many operations wait at the server
	NoWindow  = uint16(op.NoWindow)  // the server's window did not admit the write in time
	TooLate   = uint16(op.TooLate)   // the server could not begin in time
	Closing   = uint16(op.Closing)
)

var reasonNames = [...][]string{
	RemoteAuth: {StaleEpoch: "stale epoch", BadKey: "bad key", BadData: "bad data"},
	NACK:       {QueueFull: "queue full", NoWindow: "no window", TooLate: "too late", Closing: "closing"},
}

func reasonName(o Outcome, reason uint16) string {
	if int(o) < len(reasonNames) && int(reason) < len(reasonNames[o]) && reason > 0 {
		return reasonNames[o][reason]
	}
	return "reason " + strconv.Itoa(int(reason))
}

// An OpError is the error of an operation. It matches the error of its Outcome, and Err.
type OpError struct {
	Outcome     Outcome
	Reason      uint16 // of RemoteAuth and NACK; 0: none
	Op          Op
	Region, Off uint64
	RetryAfter  time.Duration // of NACK, when the server may have room again; 0: unknown
	Err         error         // details; nil: none
}

func (e *OpError) Error() string {
	s := fmt.Sprintf("rma: %v of region %#x at %d: %v", e.Op, e.Region, e.Off, e.Outcome)
	if e.Reason != 0 {
		s += " (" + reasonName(e.Outcome, e.Reason) + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the error of the Outcome, and Err.
func (e *OpError) Unwrap() []error {
	var all []error
	if int(e.Outcome) < len(outcomeErrors) && outcomeErrors[e.Outcome] != nil {
		all = append(all, outcomeErrors[e.Outcome])
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// Timeout reports whether the operation timed out. It is the Timeout method of net.Error.
func (e *OpError) Timeout() bool { return e.Outcome == Timeout || e.Outcome == DispatchTimeout }

// Errors of calls that are wrong or premature.
var (
	// ErrNoSlot is the error of Post when all slots of the Portal are in use, and of Client.Portal
	// when too few slots are left.
	ErrNoSlot = errors.New("rma: no slot is free")
	// ErrNoSuite is returned when the two sides cannot agree on how to protect operations. On a connection
	// without authentication, both sides must set Insecure.
	ErrNoSuite = wire.ErrNoSuite

	errClosed   = fmt.Errorf("rma: the connection is closed: %w", net.ErrClosed)
	errProtocol = errors.New("rma: the peer does not follow the protocol")
	errTooLong  = errors.New("rma: longer than an operation may be: see Client.MaxOp")
	errNotOpen  = errors.New("rma: the Handle is of another Client, or was not opened for this operation")
	errUnknown  = errors.New("rma: unknown operation")
	errNoRegion = errors.New("rma: the region is closed")
	errNoMemory = errors.New("the memory for operations under way is used up: see ScratchLimit in ClientConfig, or in ServerConfig if this side serves too")
)
