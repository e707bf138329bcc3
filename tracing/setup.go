package tracing

import (
	"context"
	"net"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/setup"
)

// Dial is iwarp.RNIC.Dial of r, with a span for the set-up and one for each of its stages.
func (t *Tracer) Dial(ctx context.Context, r *iwarp.RNIC, network, addr string, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	return t.setUp(ctx, "dial", target(network, addr), qc, func(ctx context.Context, qc *iwarp.QPConfig) (*iwarp.QP, error) {
		return r.Dial(ctx, network, addr, qc)
	})
}

// Client is iwarp.RNIC.Client of r, with spans like those of Dial. There are no spans for a nil connection.
func (t *Tracer) Client(ctx context.Context, r *iwarp.RNIC, c net.Conn, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	if setup.CheckConn("client", c) != nil {
		return r.Client(ctx, c, qc)
	}
	return t.setUp(ctx, "client", ends(c.LocalAddr(), c.RemoteAddr()), qc, func(ctx context.Context, qc *iwarp.QPConfig) (*iwarp.QP, error) {
		return r.Client(ctx, c, qc)
	})
}

// setUp runs the set-up of a connection that this side requests, and traces its stages.
func (t *Tracer) setUp(ctx context.Context, name string, attrs []attribute.KeyValue, qc *iwarp.QPConfig,
	run func(ctx context.Context, qc *iwarp.QPConfig) (*iwarp.QP, error),
) (*iwarp.QP, error) {
	var cfg iwarp.QPConfig
	if qc != nil {
		cfg = *qc
	}
	ctx, span := t.start(ctx, name, trace.SpanKindClient, attrs...)
	s := &stages{tracer: t, user: cfg.SetupTrace}
	stageTrace := &iwarp.SetupTrace{Enter: s.enter, Leave: s.leave}
	cfg.SetupTrace = stageTrace
	qp, err := run(ctx, &cfg)
	*stageTrace = iwarp.SetupTrace{} // the QP keeps it
	switch {
	case err != nil:
		span.SetAttributes(keyStage.String(label(s.at.String())))
	case span.IsRecording():
		span.SetAttributes(established(qp)...)
	}
	end(span, err)
	return qp, err
}

// Stages returns an [iwarp.SetupTrace] that makes the spans of stages and calls the functions of user, which may be nil. It is for
// set-ups that Dial of this package does not make, such as those of cm.DialMany, and for one set-up at a time: each target needs
// its own. The parent of the spans is the span of the set-up's context.
func (t *Tracer) Stages(user *iwarp.SetupTrace) *iwarp.SetupTrace {
	s := &stages{tracer: t, user: user}
	return &iwarp.SetupTrace{Enter: s.enter, Leave: s.leave}
}

// stages makes the spans of one set-up. One goroutine uses it.
type stages struct {
	tracer *Tracer
	user   *iwarp.SetupTrace
	at     iwarp.SetupStage // the last stage that was begun
	span   trace.Span
}

// enter is SetupTrace.Enter. The span begins when the user's function lets the stage begin.
func (s *stages) enter(ctx context.Context, at iwarp.SetupStage) error {
	s.at = at
	if s.user != nil && s.user.Enter != nil {
		if err := s.user.Enter(ctx, at); err != nil {
			return err
		}
	}
	_, s.span = s.tracer.start(ctx, "setup."+label(at.String()), trace.SpanKindInternal)
	return nil
}

// leave is SetupTrace.Leave.
func (s *stages) leave(at iwarp.SetupStage, err error) {
	end(s.span, err)
	if s.user != nil && s.user.Leave != nil {
		s.user.Leave(at, err)
	}
}

// Accept is iwarp.ConnRequest.Accept of cr, with a span.
func (t *Tracer) Accept(ctx context.Context, cr *iwarp.ConnRequest, qc *iwarp.QPConfig) (*iwarp.QP, error) {
	ctx, span := t.start(ctx, "accept", trace.SpanKindServer, ends(cr.LocalAddr(), cr.RemoteAddr())...)
	qp, err := cr.Accept(ctx, qc)
	if err == nil && span.IsRecording() {
		span.SetAttributes(established(qp)...)
	}
	end(span, err)
	return qp, err
}
