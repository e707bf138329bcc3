package iwarp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/stag"
)

// durable checks what the options say about durability of buf, nil for memory, and puts
// it into o.
func (opts *MROptions) durable(o *stag.Options, buf Buffer) error {
	if opts.Durable == nil {
		if opts.DurableOnReceive || opts.WriteThrough || opts.Integrity != nil {
			return errors.New("iwarp: register: MROptions.Durable is not set, and so nothing can be made durable")
		}
		return nil
	}
	if own, ok := opts.Durable.(Buffer); ok && own != buf {
		return fmt.Errorf("iwarp: register: MROptions.Durable makes octets of its own durable, and not those of the region: use RegisterBuffer with the same %T", own)
	}
	durable.Options{By: opts.Durable, WriteThrough: opts.WriteThrough, Integrity: opts.Integrity}.Apply(o)
	return nil
}
