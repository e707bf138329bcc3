package main

import (
	"context"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

// A view is a medium as a Backend. The medium may have become larger or smaller since the view was made. Nothing else of it changes,
// so only operations that use the medium wait while it is resized.
type view struct {
	m                  *medium
	size               int64
	block              int
	readOnly, volatile bool
	traits             backend.Traits
}

var _ backend.Backend = (*view)(nil)

// newView returns a view of the medium in its current size. The view is never immediate, since it waits while the medium is resized.
func newView(m *medium) *view {
	b := m.back
	v := &view{m, m.size, b.BlockSize(), b.ReadOnly(), b.Volatile(), backend.Describe(b)}
	v.traits.Immediate = false
	return v
}

// use calls f while the back end cannot be replaced.
func (v *view) use(f func(backend.Backend) error) error {
	v.m.mu.RLock()
	defer v.m.mu.RUnlock()
	return f(v.m.back)
}

// Size returns the size of the medium when the view was made.
func (v *view) Size() int64 { return v.size }

// BlockSize returns the block size of the medium.
func (v *view) BlockSize() int { return v.block }

// ReadOnly reports whether the medium is read-only.
func (v *view) ReadOnly() bool { return v.readOnly }

// Volatile reports whether the medium is volatile.
func (v *view) Volatile() bool { return v.volatile }

// Traits returns the traits of the medium, except for one.
func (v *view) Traits() backend.Traits { return v.traits }

func (v *view) ReadAt(ctx context.Context, p []byte, off int64) error {
	return v.use(func(b backend.Backend) error { return b.ReadAt(ctx, p, off) })
}

func (v *view) WriteAt(ctx context.Context, p []byte, off int64, fua bool) error {
	return v.use(func(b backend.Backend) error { return b.WriteAt(ctx, p, off, fua) })
}

func (v *view) WriteZeroes(ctx context.Context, off, n int64, unmap, fua bool) error {
	return v.use(func(b backend.Backend) error { return b.WriteZeroes(ctx, off, n, unmap, fua) })
}

func (v *view) Trim(ctx context.Context, off, n int64) error {
	return v.use(func(b backend.Backend) error { return b.Trim(ctx, off, n) })
}

func (v *view) Flush(ctx context.Context) error {
	return v.use(func(b backend.Backend) error { return b.Flush(ctx) })
}

// Close does nothing: the medium is closed separately.
func (v *view) Close() error { return nil }
