package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// A Tracer makes spans. All methods may be called from any goroutine.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer that makes its spans with p, which must not be nil. The name of the instrumentation is the path of this
// package.
func New(p trace.TracerProvider) *Tracer {
	return &Tracer{p.Tracer("github.com/goiwarp/iwarp/tracing", trace.WithSchemaURL(semconv.SchemaURL))}
}

// start begins a span, as a child of the span of ctx.
func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "iwarp."+name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// end ends a span, with the error of its operation.
func end(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		fail(span, err)
	}
	span.End()
}
