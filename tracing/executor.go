package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp/rma"
)

// An Executor is an rma.Executor that makes one span for each transfer, however many operations it is split into. There is no span
// for a nil Handle.
type Executor struct {
	*rma.Executor

	tracer *Tracer
}

// Executor returns e with spans.
func (t *Tracer) Executor(e *rma.Executor) *Executor { return &Executor{e, t} }

// ReadAt is rma.Executor.ReadAt.
func (e *Executor) ReadAt(ctx context.Context, h *rma.Handle, p []byte, off int64) (int, error) {
	return e.transfer(ctx, "rma.read", h, p, off, e.Executor.ReadAt)
}

// WriteAt is rma.Executor.WriteAt.
func (e *Executor) WriteAt(ctx context.Context, h *rma.Handle, p []byte, off int64) (int, error) {
	return e.transfer(ctx, "rma.write", h, p, off, e.Executor.WriteAt)
}

func (e *Executor) transfer(ctx context.Context, name string, h *rma.Handle, p []byte, off int64,
	run func(ctx context.Context, h *rma.Handle, p []byte, off int64) (int, error),
) (int, error) {
	if h == nil {
		return run(ctx, h, p, off)
	}
	ctx, span := e.tracer.start(ctx, name, trace.SpanKindClient, keyRegion.Int64(int64(h.Region())), keyOffset.Int64(off), keyOctets.Int(len(p)))
	n, err := run(ctx, h, p, off)
	end(span, err)
	return n, err
}
