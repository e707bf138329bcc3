package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A QP is an established iwarp.QP. Its methods that take a context make a span each; all others are those of the iwarp.QP.
type QP struct {
	*iwarp.QP

	tracer *Tracer
	attrs  []attribute.KeyValue // of each span
}

// QP returns qp, which must be established, with spans.
func (t *Tracer) QP(qp *iwarp.QP) *QP {
	return &QP{QP: qp, tracer: t, attrs: ends(qp.LocalAddr(), qp.RemoteAddr())}
}

// traced runs an operation in a span. octets is the payload that it moves; it is negative if unknown.
func (q *QP) traced(ctx context.Context, name string, octets int64, run func(ctx context.Context) error) error {
	return q.spanned(ctx, name, trace.SpanKindClient, octets, func(ctx context.Context, _ trace.Span) error { return run(ctx) })
}

// local is like traced, for an operation in which the peer takes no part.
func (q *QP) local(ctx context.Context, name string, run func(ctx context.Context) error) error {
	return q.spanned(ctx, name, trace.SpanKindInternal, -1, func(ctx context.Context, _ trace.Span) error { return run(ctx) })
}

func (q *QP) spanned(ctx context.Context, name string, kind trace.SpanKind, octets int64, run func(ctx context.Context, span trace.Span) error) error {
	ctx, span := q.tracer.start(ctx, name, kind, q.attrs...)
	if octets >= 0 {
		span.SetAttributes(keyOctets.Int64(octets))
	}
	err := run(ctx, span)
	end(span, err)
	return err
}

// sizeOf returns the sum of the lengths.
func sizeOf(sges []iwarp.SGE) (n int64) {
	for i := range sges {
		n += int64(sges[i].Len)
	}
	return n
}

// Send is iwarp.QP.Send.
func (q *QP) Send(ctx context.Context, local ...iwarp.SGE) error {
	return q.traced(ctx, "send", sizeOf(local), func(ctx context.Context) error { return q.QP.Send(ctx, local...) })
}

// SendInvalidate is iwarp.QP.SendInvalidate.
func (q *QP) SendInvalidate(ctx context.Context, invalidate stag.STag, local ...iwarp.SGE) error {
	return q.traced(ctx, "send_with_invalidate", sizeOf(local), func(ctx context.Context) error { return q.QP.SendInvalidate(ctx, invalidate, local...) })
}

// SendImmediate is iwarp.QP.SendImmediate.
func (q *QP) SendImmediate(ctx context.Context, imm [8]byte) error {
	return q.traced(ctx, "immediate", int64(len(imm)), func(ctx context.Context) error { return q.QP.SendImmediate(ctx, imm) })
}

// RDMAWrite is iwarp.QP.RDMAWrite.
func (q *QP) RDMAWrite(ctx context.Context, dst iwarp.RemoteBuffer, src ...iwarp.SGE) error {
	return q.traced(ctx, "rdma_write", sizeOf(src), func(ctx context.Context) error { return q.QP.RDMAWrite(ctx, dst, src...) })
}

// RDMAWriteImm is iwarp.QP.RDMAWriteImm.
func (q *QP) RDMAWriteImm(ctx context.Context, dst iwarp.RemoteBuffer, imm [8]byte, src ...iwarp.SGE) error {
	return q.traced(ctx, "rdma_write_with_immediate", sizeOf(src), func(ctx context.Context) error { return q.QP.RDMAWriteImm(ctx, dst, imm, src...) })
}

// RDMARead is iwarp.QP.RDMARead.
func (q *QP) RDMARead(ctx context.Context, dst iwarp.SGE, src iwarp.RemoteBuffer) error {
	return q.traced(ctx, "rdma_read", int64(src.Len), func(ctx context.Context) error { return q.QP.RDMARead(ctx, dst, src) })
}

// RDMAReadInvalidate is iwarp.QP.RDMAReadInvalidate.
func (q *QP) RDMAReadInvalidate(ctx context.Context, dst iwarp.SGE, src iwarp.RemoteBuffer) error {
	return q.traced(ctx, "rdma_read_with_local_invalidate", int64(src.Len), func(ctx context.Context) error { return q.QP.RDMAReadInvalidate(ctx, dst, src) })
}

// FetchAdd is iwarp.QP.FetchAdd.
func (q *QP) FetchAdd(ctx context.Context, at iwarp.RemoteBuffer, add uint64) (old uint64, err error) {
	err = q.traced(ctx, "fetch_and_add", stag.AtomicLen, func(ctx context.Context) (err error) {
		old, err = q.QP.FetchAdd(ctx, at, add)
		return err
	})
	return old, err
}

// CompareSwap is iwarp.QP.CompareSwap.
func (q *QP) CompareSwap(ctx context.Context, at iwarp.RemoteBuffer, old, new uint64) (prev uint64, err error) {
	err = q.traced(ctx, "compare_and_swap", stag.AtomicLen, func(ctx context.Context) (err error) {
		prev, err = q.QP.CompareSwap(ctx, at, old, new)
		return err
	})
	return prev, err
}

// Swap is iwarp.QP.Swap.
func (q *QP) Swap(ctx context.Context, at iwarp.RemoteBuffer, new uint64) (old uint64, err error) {
	err = q.traced(ctx, "swap", stag.AtomicLen, func(ctx context.Context) (err error) {
		old, err = q.QP.Swap(ctx, at, new)
		return err
	})
	return old, err
}
