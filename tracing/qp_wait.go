package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Recv is iwarp.QP.Recv. The span has the length of the message as its octets.
func (q *QP) Recv(ctx context.Context, into iwarp.SGE) (n int, err error) {
	wc, err := q.RecvWC(ctx, into)
	return int(wc.Len), err
}

// RecvWC is iwarp.QP.RecvWC. The span has the length of the message as its octets.
func (q *QP) RecvWC(ctx context.Context, into ...iwarp.SGE) (wc iwarp.WC, err error) {
	err = q.spanned(ctx, "receive", trace.SpanKindClient, -1, func(ctx context.Context, span trace.Span) (err error) {
		if wc, err = q.QP.RecvWC(ctx, into...); err == nil {
			span.SetAttributes(keyOctets.Int64(int64(wc.Len)))
		}
		return err
	})
	return wc, err
}

// Do is iwarp.QP.Do, with one span for the whole list.
func (q *QP) Do(ctx context.Context, wrs ...iwarp.SendWR) (wcs []iwarp.WC, err error) {
	err = q.spanned(ctx, "do", trace.SpanKindClient, -1, func(ctx context.Context, span trace.Span) (err error) {
		span.SetAttributes(keyRequests.Int(len(wrs)))
		wcs, err = q.QP.Do(ctx, wrs...)
		return err
	})
	return wcs, err
}

// Drain is iwarp.QP.Drain.
func (q *QP) Drain(ctx context.Context) error { return q.local(ctx, "drain", q.QP.Drain) }

// Bind is iwarp.QP.Bind.
func (q *QP) Bind(ctx context.Context, mw *iwarp.MW, to iwarp.SGE, access stag.Access) error {
	return q.local(ctx, "bind", func(ctx context.Context) error { return q.QP.Bind(ctx, mw, to, access) })
}

// Register is iwarp.QP.Register.
func (q *QP) Register(ctx context.Context, mr *iwarp.MR, memory []byte, access stag.Access) error {
	return q.local(ctx, "register", func(ctx context.Context) error { return q.QP.Register(ctx, mr, memory, access) })
}

// LocalInvalidate is iwarp.QP.LocalInvalidate.
func (q *QP) LocalInvalidate(ctx context.Context, s stag.STag) error {
	return q.local(ctx, "local_invalidate", func(ctx context.Context) error { return q.QP.LocalInvalidate(ctx, s) })
}

// Commit is iwarp.QP.Commit. The span has the total length of the regions as its octets.
func (q *QP) Commit(ctx context.Context, regions ...iwarp.RemoteBuffer) error {
	return q.traced(ctx, "commit", sizeOfRegions(regions), func(ctx context.Context) error { return q.QP.Commit(ctx, regions...) })
}

// CommitThen is iwarp.QP.CommitThen. The span has the total length of the regions as its octets.
func (q *QP) CommitThen(ctx context.Context, f iwarp.FollowOn, regions ...iwarp.RemoteBuffer) error {
	return q.traced(ctx, "commit", sizeOfRegions(regions), func(ctx context.Context) error { return q.QP.CommitThen(ctx, f, regions...) })
}

// CommitRange is iwarp.QP.CommitRange, with one span for all its Commits.
func (q *QP) CommitRange(ctx context.Context, st stag.STag, to, n uint64) error {
	return q.traced(ctx, "commit", int64(n), func(ctx context.Context) error { return q.QP.CommitRange(ctx, st, to, n) })
}

func sizeOfRegions(regions []iwarp.RemoteBuffer) (n int64) {
	for i := range regions {
		n += int64(regions[i].Len)
	}
	return n
}
