package stag

import "errors"

var (
	// ErrInvalid is returned for a placement into a region that was invalidated
	// after the work request that names it was posted.
	ErrInvalid = errors.New("stag: region is invalid")

	// ErrBounds is returned where octets outside a region or a list of spans were
	// addressed locally. What a peer addresses is answered with [Bounds].
	ErrBounds = errors.New("stag: out of bounds")

	// ErrExhausted is returned by Register when the table is full.
	ErrExhausted = errors.New("stag: no free STag")
)
