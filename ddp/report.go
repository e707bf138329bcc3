package ddp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/transport"
)

// A SegmentError says which segment failed its checks, and why: all that a
// Terminate message reports about it (RFC 5041 section 7.1).
type SegmentError struct {
	Fault  *transport.Fault
	Header []byte // the DDP header as received, 14 or 18 octets; nil if the segment was too short for it
	Len    int    // octets of the whole segment, its header included
}

func (e *SegmentError) Error() string {
	return fmt.Sprintf("ddp: segment of %d octets: %v", e.Len, e.Fault)
}

func (e *SegmentError) Unwrap() error { return e.Fault }

// Code returns the layer, type and code to report.
func (e *SegmentError) Code() transport.Code { return e.Fault.Code }

// newSegmentError returns the SegmentError for err and the segment of n octets that
// starts with head. It copies head.
func newSegmentError(head []byte, n int, err error) *SegmentError {
	e := &SegmentError{Fault: asFault(err), Len: n}
	if h := headerLen(IsTagged(head)); n >= h {
		e.Header = append(e.Header, head[:h]...)
	}
	return e
}

// asFault gives every error a code: an error without a code, of the layer above or of the
// memory, is a local catastrophic error (RFC 5041 section 7.2).
func asFault(err error) *transport.Fault {
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		return f
	}
	return &transport.Fault{Code: transport.DDPLocalCatastrophic, Err: err}
}

func headerLen(tagged bool) int {
	if tagged {
		return TaggedLen
	}
	return UntaggedLen
}
