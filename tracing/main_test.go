package tracing

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A recorder holds a Tracer, and the spans that it has made.
type recorder struct {
	*Tracer
	provider *sdk.TracerProvider
	exporter *tracetest.InMemoryExporter
}

func record(t testing.TB) *recorder {
	t.Helper()
	e := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(e))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return &recorder{New(p), p, e}
}

// take returns the spans that have ended since the last call, in the order of their ends.
func (r *recorder) take() tracetest.SpanStubs {
	spans := r.exporter.GetSpans()
	r.exporter.Reset()
	return spans
}

// only returns the single span that has ended since the last call.
func (r *recorder) only(t testing.TB) tracetest.SpanStub {
	t.Helper()
	spans := r.take()
	require.Len(t, spans, 1)
	return spans[0]
}

// within begins a span of the caller.
func (r *recorder) within(t testing.TB) (ctx context.Context, caller trace.Span) {
	return r.provider.Tracer("test").Start(timely(t), "caller")
}

// timely returns a context that bounds a test.
func timely(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// attributesOf returns the attributes of a span, by name.
func attributesOf(s *tracetest.SpanStub) map[string]any {
	m := make(map[string]any)
	for _, a := range s.Attributes {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

// namesOf returns the names of spans.
func namesOf(spans tracetest.SpanStubs) (names []string) {
	for i := range spans {
		names = append(names, spans[i].Name)
	}
	return names
}

// A side is an RNIC with memory.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	mr   *iwarp.MR
}

func newSide(t testing.TB, access stag.Access) *side {
	t.Helper()
	r, pd := rnictest.Open(t, nil)
	mr, err := pd.RegisterMR(make([]byte, 4096), access, nil)
	require.NoError(t, err)
	return &side{r, pd, mr}
}

// listens listens, and answers the requests that come by answer.
func (s *side) listens(t testing.TB, answer func(cr *iwarp.ConnRequest)) (addr string) {
	t.Helper()
	l, err := s.rnic.Listen(timely(t), "pipe", "", nil)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			cr, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			answer(cr)
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
	})
	return l.Addr().String()
}

// pair connects two QPs of options.
func pair(t testing.TB, client, server *side, o *iwarp.QPConfig) (c, s *iwarp.QP) {
	t.Helper()
	accepted := make(chan *iwarp.QP, 1)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		cfg := *o
		cfg.PD = server.pd
		qp, err := cr.Accept(timely(t), &cfg)
		if err != nil {
			t.Error(err)
		}
		accepted <- qp
	})
	cfg := *o
	cfg.PD = client.pd
	c, err := client.rnic.Dial(timely(t), "pipe", addr, &cfg)
	require.NoError(t, err)
	return c, <-accepted
}
