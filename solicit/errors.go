package solicit

import "errors"

// Errors of Enqueue.
var (
	// ErrTooLarge means that an operation is larger than the window can ever be, so that it
	// would wait for ever. The caller must split it.
	ErrTooLarge = errors.New("solicit: operation larger than the window can be")
	// ErrQueueFull means that Config.MaxQueue operations of its class wait.
	ErrQueueFull = errors.New("solicit: queue full")
	// ErrInvalid means an unknown class, or a negative size.
	ErrInvalid = errors.New("solicit: unknown class or negative size")
)
