package commit

import "fmt"

// A Status is the result of a Commit: the code in the lower 16 bits, and above it the index
// of the first region that failed, or [NoRegion] if that does not apply. Only zero is
// success: an unknown code is a failure.
type Status uint32

// A Code says why a Commit failed.
type Code uint16

// The codes. The failure of a Commit does not mean that data is lost, except for DataLost, and
// perhaps Vendor and ReadOnly; it is unknown which octets are durable.
const (
	OK             Code = 0x0000
	Failed         Code = 0x0001 // the data is where it was; try again, or write it again
	ReadOnly       Code = 0x0002 // the device accepts no more changes
	Integrity      Code = 0x0003 // a check of the region has failed; write it again
	Limit          Code = 0x0004 // too many octets for one request; split it
	Transient      Code = 0x0005 // a temporary failure; try again. Never for a failed sync of a file
	NotDurable     Code = 0x0006 // the region has nothing that could make it durable
	FollowOnFailed Code = 0x0007 // all regions are durable; the follow-on is not
	DataLost       Code = 0x0008 // the octets may no longer be what was written; write them again
	Unspecified    Code = 0x00ff
	Vendor         Code = 0x8000 // with the errno of the peer in the lower 15 bits; write them again
)

// NoRegion is the index of a failure that is not about one region.
const NoRegion = 0xffff

// MakeStatus makes a Status from a region's index and a code. An index that does not fit in 16
// bits becomes NoRegion.
func MakeStatus(region int, c Code) Status {
	if c == OK {
		return 0
	}
	if region < 0 || region > NoRegion {
		region = NoRegion
	}
	return Status(region)<<16 | Status(c)
}

// Code returns the lower half of s, or Unspecified if s is not zero but its lower half is.
func (s Status) Code() Code {
	if s != 0 && uint16(s) == 0 {
		return Unspecified
	}
	return Code(s)
}

// Region returns the index of the region that failed, or NoRegion if it was none; 0 for success.
func (s Status) Region() int { return int(s >> 16) }

// Err returns nil for success, and otherwise an *[Error].
func (s Status) Err() error {
	if s == 0 {
		return nil
	}
	return &Error{Status: s}
}

func (s Status) String() string {
	switch {
	case s == 0:
		return "committed"
	case s.Region() == NoRegion:
		return s.Code().String()
	}
	return fmt.Sprintf("%v (region %d)", s.Code(), s.Region())
}

var codeNames = map[Code]string{
	OK: "committed", Failed: "commit failed", ReadOnly: "read only", Integrity: "integrity check failed",
	Limit: "too many octets", Transient: "temporary failure", NotDurable: "region is not durable",
	FollowOnFailed: "follow-on failed", DataLost: "data lost", Unspecified: "unspecified failure",
}

func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	if c&Vendor != 0 {
		return fmt.Sprintf("device error %d", c&^Vendor)
	}
	return fmt.Sprintf("Code(%#04x)", uint16(c))
}

// An Error is a failed Commit. The user's own [Flusher] returns one to choose the code that
// the peer receives.
type Error struct {
	Status Status
	Err    error // the details; nil at the requester
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "commit: " + e.Status.String()
	}
	return "commit: " + e.Status.String() + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code, and with neither a region nor an
// Err, so that errors.Is(err, commit.ErrDataLost) works whichever region failed.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Err == nil && t.Status.Code() == e.Status.Code() && t.Status.Region() == NoRegion
}

// Errors to use with errors.Is.
var (
	ErrFailed     error = &Error{Status: MakeStatus(NoRegion, Failed)}
	ErrReadOnly   error = &Error{Status: MakeStatus(NoRegion, ReadOnly)}
	ErrIntegrity  error = &Error{Status: MakeStatus(NoRegion, Integrity)}
	ErrLimit      error = &Error{Status: MakeStatus(NoRegion, Limit)}
	ErrTransient  error = &Error{Status: MakeStatus(NoRegion, Transient)}
	ErrNotDurable error = &Error{Status: MakeStatus(NoRegion, NotDurable)}
	ErrDataLost   error = &Error{Status: MakeStatus(NoRegion, DataLost)}
)
