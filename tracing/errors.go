package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/rma"
	llp "github.com/goiwarp/iwarp/transport"
)

// fail gives a span the status of an error, its class and its numbers.
func fail(span trace.Span, err error) {
	span.SetStatus(codes.Error, valid(err.Error()))
	span.SetAttributes(classOf(err))
	if term, ok := errors.AsType[*iwarp.TerminateError](err); ok {
		span.SetAttributes(keyLayer.Int(int(term.Layer)), keyType.Int(int(term.Type)), keyCode.Int(int(term.Code)), keyRemote.Bool(term.Remote))
	}
	if failed, ok := errors.AsType[*commit.Error](err); ok {
		span.SetAttributes(keyCommit.Int(int(failed.Status.Code())))
	}
	if op, ok := errors.AsType[*rma.OpError](err); ok && op.Reason != 0 {
		span.SetAttributes(keyReason.Int(int(op.Reason)))
	}
}

// classes are the values of error.type. The first one that matches an error applies.
var classes = []struct {
	name string
	is   func(err error) bool
}{
	{"authentication", matches(iwarp.ErrAuth)},
	{"terminate", has[*iwarp.TerminateError]},
	{"commit", has[*commit.Error]},
	{"rejected", matches(iwarp.ErrRejected)},
	{"canceled", matches(context.Canceled)},
	{"timeout", matches(context.DeadlineExceeded, os.ErrDeadlineExceeded)},
	{"dispatch_timeout", matches(iwarp.ErrDispatchTimeout)},
	{"limit", matches(iwarp.ErrLimit, iwarp.ErrCQTooSmall, rma.ErrNoSlot)},
	{"queue_full", matches(iwarp.ErrQueueFull)},
	{"access", matches(iwarp.ErrAccess)},
	{"bounds", matches(iwarp.ErrBounds)},
	{"invalid_stag", matches(iwarp.ErrInvalidSTag)},
	{"no_receive", matches(iwarp.ErrNoReceive)},
	{"window_bound", matches(iwarp.ErrWindowBound)},
	{"unsupported", matches(iwarp.ErrUnsupported)},
	{"flushed", matches(iwarp.ErrFlushed)},
	{"out_of_resources", matches(llp.ErrExhausted)},
	{"tls", func(err error) bool {
		return setup.FailedTLS(err) || has[*tls.CertificateVerificationError](err) || has[tls.AlertError](err)
	}},
	{"closed", matches(net.ErrClosed)},
	{"connection", func(err error) bool { return has[net.Error](err) || setup.NoConnection(err) }},
}

// classOf returns the attribute error.type.
func classOf(err error) attribute.KeyValue {
	if op, ok := errors.AsType[*rma.OpError](err); ok {
		return semconv.ErrorTypeKey.String(label(op.Outcome.String()))
	}
	for _, c := range classes {
		if c.is(err) {
			return semconv.ErrorTypeKey.String(c.name)
		}
	}
	return semconv.ErrorTypeOther
}

func matches(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
