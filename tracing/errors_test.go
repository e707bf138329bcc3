package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/rma"
	llp "github.com/goiwarp/iwarp/transport"
)

// TestClassesOfErrors, however deep in the chain they are.
func TestClassesOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&cm.Error{Reason: cm.ReasonBadMAC}, "authentication"},
		{&iwarp.TerminateError{Err: iwarp.ErrAuth}, "authentication"},
		{&iwarp.TerminateError{Layer: 1, Type: 2, Code: 2}, "terminate"},
		{commit.ErrDataLost, "commit"},
		{&iwarp.RejectError{}, "rejected"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "timeout"},
		{os.ErrDeadlineExceeded, "timeout"},
		{fmt.Errorf("%w: the last set-up: %w", context.Canceled, context.DeadlineExceeded), "canceled"},
		{iwarp.ErrDispatchTimeout, "dispatch_timeout"},
		{iwarp.ErrLimit, "limit"},
		{iwarp.ErrCQTooSmall, "limit"},
		{rma.ErrNoSlot, "limit"},
		{&iwarp.PostError{Err: iwarp.ErrQueueFull}, "queue_full"},
		{iwarp.ErrAccess, "access"},
		{iwarp.ErrBounds, "bounds"},
		{iwarp.ErrInvalidSTag, "invalid_stag"},
		{iwarp.ErrNoReceive, "no_receive"},
		{iwarp.ErrWindowBound, "window_bound"},
		{iwarp.ErrUnsupported, "unsupported"},
		{iwarp.ErrFlushed, "flushed"},
		{llp.ErrExhausted, "out_of_resources"},
		{tls.AlertError(42), "tls"},
		{tls.RecordHeaderError{}, "tls"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "tls"},
		{&tls.CertificateVerificationError{Err: io.EOF}, "tls"},
		{net.ErrClosed, "closed"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection"},
		{&llp.Fault{Code: llp.MPAConnectionLost, Err: io.EOF}, "connection"},
		{&rma.OpError{Outcome: rma.NACK}, "refused_by_the_server"},
		{&rma.OpError{Outcome: rma.Timeout, Err: context.DeadlineExceeded}, "timeout"},
		{errors.New("of the test"), "_OTHER"},
	} {
		require.Equal(t, c.want, classOf(fmt.Errorf("deep: %w", c.err)).Value.AsString(), "%v", c.err)
	}
}

// TestNumbersOfErrors: of a Commit, and of an operation of package rma.
func TestNumbersOfErrors(t *testing.T) {
	r := record(t)
	for err, want := range map[error]map[string]any{
		commit.ErrDataLost: {"error.type": "commit", "iwarp.commit.code": int64(commit.DataLost)},
		&rma.OpError{Outcome: rma.RemoteAuth, Reason: rma.StaleEpoch}: {"error.type": "remote_authentication_failure", "iwarp.rma.reason": int64(rma.StaleEpoch)},
		&rma.OpError{Outcome: rma.Bounds}:                             {"error.type": "outside_of_the_region"},
	} {
		_, span := r.start(t.Context(), "test", trace.SpanKindInternal)
		end(span, err)
		got := r.only(t)
		require.Equal(t, want, attributesOf(&got))
	}
}

// TestTextOfAStatusIsUTF8, which an exporter requires of everything that it sends.
func TestTextOfAStatusIsUTF8(t *testing.T) {
	r := record(t)
	_, span := r.start(t.Context(), "test", trace.SpanKindInternal)
	end(span, &os.PathError{Op: "read", Path: "disk\xff", Err: syscall.EIO})
	require.Equal(t, "read disk\uFFFD: input/output error", r.only(t).Status.Description)
}
