package stag

import "github.com/goiwarp/iwarp/internal/names"

// A Violation says why an access or an invalidation was refused. It is not an error,
// because each protocol layer has its own codes for the same reason.
type Violation uint8

const (
	None             Violation = iota // the access is allowed
	InvalidSTag                       // no such STag, another key, or the region is INVALID
	NotAssociated                     // the STag belongs to another PD or another stream
	AccessDenied                      // the region does not grant the right
	Wrap                              // TO + length does not fit in 64 bits
	Bounds                            // some octet lies outside the region
	NotInvalidatable                  // this stream may not invalidate this STag
)

var violationNames = [...]string{
	None:             "no violation",
	InvalidSTag:      "invalid STag",
	NotAssociated:    "STag not associated with the stream",
	AccessDenied:     "access rights violation",
	Wrap:             "TO wrap",
	Bounds:           "base or bounds violation",
	NotInvalidatable: "STag cannot be invalidated",
}

func (v Violation) String() string { return names.Of(v, violationNames[:], "Violation(%d)") }
