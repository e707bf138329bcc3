package tracing_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/tracing"
)

// A set-up and an operation, in the trace of the caller.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // a program uses an OTLP exporter, and otel.GetTracerProvider
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	t := tracing.New(provider)

	rnic, err := iwarp.Open(nil)
	check(err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	check(err)
	mr, err := pd.RegisterMR(make([]byte, 4096), stag.LocalWrite|stag.RemoteRead, nil)
	check(err)

	ctx, request := provider.Tracer("example").Start(context.Background(), "request")
	qp, err := t.Dial(ctx, rnic, "pipe", listen(rnic, pd), &iwarp.QPConfig{PD: pd})
	check(err)
	err = t.QP(qp).RDMARead(ctx, mr.Slice(0, 100), mr.Advertise(100, 100))
	check(err)
	request.End()

	for _, s := range exporter.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// iwarp.setup.qp
	// iwarp.setup.dial
	// iwarp.setup.request
	// iwarp.setup.reply
	// iwarp.setup.confirm
	// iwarp.setup.ready
	// iwarp.dial
	// iwarp.rdma_read
	// request
}

// listen accepts one connection.
func listen(rnic *iwarp.RNIC, pd *iwarp.PD) (addr string) {
	ctx := context.Background()
	l, err := rnic.Listen(ctx, "pipe", "", nil)
	check(err)
	go func() {
		defer l.Close()
		cr, err := l.Accept(ctx)
		check(err)
		_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: pd})
		check(err)
	}()
	return l.Addr().String()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The private data of this application begin with the context of a trace: 55 octets of W3C Trace Context. Both sides know that.
func ExampleTracer_Accept() {
	exporter := tracetest.NewInMemoryExporter()
	t := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(exporter)))
	rnic, err := iwarp.Open(nil)
	check(err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	check(err)

	const field = "traceparent"
	var format propagation.TraceContext
	l, err := rnic.Listen(context.Background(), "pipe", "", nil)
	check(err)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		cr, err := l.Accept(context.Background())
		check(err)
		ctx := format.Extract(context.Background(), propagation.MapCarrier{field: string(cr.PrivateData())})
		_, err = t.Accept(ctx, cr, &iwarp.QPConfig{PD: pd})
		check(err)
	}()

	ctx, request := sdk.NewTracerProvider().Tracer("example").Start(context.Background(), "request")
	carrier := propagation.MapCarrier{}
	format.Inject(ctx, carrier)
	_, err = rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: pd, PrivateData: []byte(carrier.Get(field))})
	check(err)
	<-accepted
	check(l.Close())
	fmt.Println(len(carrier.Get(field)), "octets")
	fmt.Println("the same trace:", exporter.GetSpans()[0].Parent.TraceID() == request.SpanContext().TraceID())
	// Output:
	// 55 octets
	// the same trace: true
}
