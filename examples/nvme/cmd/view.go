package main

import (
	"context"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

// A view is a medium as a Backend. The medium may have become larger, or smaller, since then.
type view struct {
	m    *medium
	size int64
}

var _ backend.Backend = (*view)(nil)

// use calls f while the back end stays.
func (v *view) use(f func(backend.Backend) error) error {
	v.m.mu.RLock()
	defer v.m.mu.RUnlock()
	return f(v.m.back)
}

// Size is that of the medium when the view was made.
func (v *view) Size() int64 { return v.size }

// BlockSize is that of the medium.
func (v *view) BlockSize() (n int) {
	_ = v.use(func(b backend.Backend) error { n = b.BlockSize(); return nil })
	return n
}

// ReadOnly is that of the medium.
func (v *view) ReadOnly() (is bool) {
	_ = v.use(func(b backend.Backend) error { is = b.ReadOnly(); return nil })
	return is
}

// Volatile is that of the medium.
func (v *view) Volatile() (is bool) {
	_ = v.use(func(b backend.Backend) error { is = b.Volatile(); return nil })
	return is
}

// Traits are those of the medium.
func (v *view) Traits() (t backend.Traits) {
	_ = v.use(func(b backend.Backend) error { t = backend.Describe(b); return nil })
	return t
}

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

// Close does nothing: the medium is closed by itself.
func (v *view) Close() error { return nil }
