package stag

import "errors"

var (
	// ErrInvalid is returned for a placement into a region that was invalidated
	// after the work request that names it was posted.
	ErrInvalid = errors.New("stag: region is invalid")

	// ErrBound is returned by Invalidate and Close of a region while memory windows are
	// bound to it. Nothing has changed then.
	ErrBound = errors.New("stag: memory windows are bound to the region")

	// ErrBounds is returned if local code addresses octets outside a region or a list of
	// spans. An address of a peer outside a region is a [Bounds] violation.
	ErrBounds = errors.New("stag: out of bounds")

	// ErrExhausted is returned when the table is full.
	ErrExhausted = errors.New("stag: no free STag")
)
