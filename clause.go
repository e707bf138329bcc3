package iwarp

import "github.com/goiwarp/iwarp/internal/errtext"

// A clause is an error whose text stands behind a colon of ours: without the name of a
// package in front.
type clause struct{ error }

func (c clause) Error() string { return plain(c.error) }
func (c clause) Unwrap() error { return c.error }

func plain(err error) string { return errtext.Plain(err) }
