package backend

import (
	"context"
	"errors"
	"sync/atomic"
)

// WriteZeroes implements [Backend].
func (v *volume) WriteZeroes(ctx context.Context, off, n int64, unmap, fua bool) error {
	if err := v.begin(ctx, OpWriteZeroes, off, n, true); err != nil {
		return err
	}
	ways := []way{{&v.zeroes, v.medium.zero}}
	if unmap && !v.traits.KeepsTrimmed {
		ways = []way{{&v.punches, v.medium.punch}, {&v.zeroes, v.medium.zero}}
	}
	if err := v.clear(ctx, OpWriteZeroes, off, n, ways); err != nil {
		return err
	}
	return v.settle(ctx, OpWriteZeroes, off, n, fua)
}

// Trim implements [Backend].
func (v *volume) Trim(ctx context.Context, off, n int64) error {
	if err := v.begin(ctx, OpTrim, off, n, true); err != nil {
		return err
	}
	return v.clear(ctx, OpTrim, off, n, []way{{&v.punches, v.medium.punch}})
}

// A way is a quick one to make zeros.
type way struct {
	works *atomic.Bool // false once it did not
	call  func(off, n int64) error
}

// clear makes zeros, by the first of the ways that the medium has, else by writing them. Other
// operations on these octets take turns with its parts.
func (v *volume) clear(ctx context.Context, op Op, off, n int64, ways []way) error {
	for end := off + n; off < end; {
		if err := ctx.Err(); err != nil {
			return &Error{Op: op, Off: off, Len: end - off, Err: err}
		}
		if len(ways) > 0 && !ways[0].works.Load() {
			ways = ways[1:]
			continue
		}
		part := min(end-off, zeroPart)
		write := func() error { return v.medium.writeAt(zeros[:part], off) }
		if len(ways) > 0 {
			part = min(end-off, quickPart)
			write = func() error { return ways[0].call(off, part) }
		}
		err := v.change(ctx, op, off, part, write)
		if errors.Is(err, errUnsupported) {
			ways[0].works.Store(false)
			continue
		}
		if err != nil {
			return err
		}
		off += part
	}
	return nil
}
