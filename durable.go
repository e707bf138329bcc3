package iwarp

import (
	"errors"
	"fmt"

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
	if own, ok := opts.Durable.(Buffer); ok && own != buf {
		return fmt.Errorf("iwarp: register: MROptions.Durable is a Buffer, but not that of the region: pass the same %T to RegisterBuffer", own)
	}
	durable.Options{By: opts.Durable, WriteThrough: opts.WriteThrough, Integrity: opts.Integrity}.Apply(o)
	return nil
}
