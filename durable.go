package iwarp

import (
	"errors"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/stag"
)

// durable checks the options that concern durability, and copies them to o. buf is nil for
// memory.
func (opts *MROptions) durable(o *stag.Options, buf Buffer) error {
	if opts.Durable == nil {
		if opts.DurableOnReceive || opts.WriteThrough || opts.Integrity != nil {
			return errors.New("iwarp: register: DurableOnReceive, WriteThrough and Integrity require MROptions.Durable")
		}
		return nil
	}
	return durable.Options{By: opts.Durable, WriteThrough: opts.WriteThrough, Integrity: opts.Integrity}.Apply(o, buf)
}
