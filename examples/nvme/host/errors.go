package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

var (
	// ErrClosed is the error of operations on a Controller and its Namespaces after Close.
	ErrClosed = errors.New("nvme: the controller is closed")
	// ErrLost is matched by each LostError.
	ErrLost = errors.New("nvme: the connections of the controller are lost")
	// ErrTimeout is matched by the cause of a LostError if a command had no response in time.
	ErrTimeout = errors.New("nvme: no response in time")
	// ErrReset is the cause of a LostError after Controller.Reset.
	ErrReset = errors.New("nvme: the controller is being reset")
	// ErrUnaligned: the offset or the length is not a multiple of the LBA size.
	ErrUnaligned = errors.New("nvme: offset or length is no multiple of the LBA size")
	// ErrOutOfRange: not all octets are within the namespace, or a Transfer has no octets or too many.
	ErrOutOfRange = errors.New("nvme: out of range")
	// ErrReplaced is the error of a Namespace whose NSID now belongs to another namespace.
	ErrReplaced = errors.New("nvme: the namespace was replaced by another one")
	// ErrShortData: the response reported success, but the target has not moved all octets.
	ErrShortData = errors.New("nvme: the target has not moved all of the data")
)

// A LostError is the error of commands that had no response when the connections of the controller
// ended, and of commands that were not sent because there were no connections. It matches ErrLost and Cause.
type LostError struct {
	Cause error // the same for all commands
	// Sent reports that the command was sent, so that it may have been executed.
	Sent bool
}

func (e *LostError) Error() string { return fmt.Sprintf("%v: %v", ErrLost, e.Cause) }

// Unwrap returns ErrLost and Cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// malformed returns an error about what the target sent.
func malformed(format string, a ...any) error {
	return fmt.Errorf("%w: %s", capsule.ErrMalformed, fmt.Sprintf(format, a...))
}

// timeoutError returns the cause when a command had no response.
func timeoutError(op capsule.Opcode, qid uint16, d time.Duration) error {
	return fmt.Errorf("%w: command %#02x on queue %d, after %v", ErrTimeout, uint8(op), qid, d)
}

// rejected adds to the error of a Dial the target's reason for a rejection: a [capsule.RejectError].
func rejected(err error) error {
	var r *iwarp.RejectError
	if !errors.As(err, &r) {
		return err
	}
	return fmt.Errorf("%w: %w", capsule.ParseReject(r.PrivateData), err)
}

// An ioQueueError is the error of a Connect on an I/O queue. The target's answer concerns a controller that it has made only for this
// attempt, and that may have ended since: another attempt has another controller.
type ioQueueError struct {
	qid uint16
	error
}

func (e *ioQueueError) Error() string { return fmt.Sprintf("nvme: queue %d: %v", e.qid, e.error) }

func (e *ioQueueError) Unwrap() error { return e.error }

// final reports whether the target says that connecting again is useless.
func final(err error) bool {
	var s capsule.StatusError
	return errors.As(err, &s) && s.Status.DNR() && !errors.As(err, new(*ioQueueError))
}
