// Package tracing records OpenTelemetry spans of the set-up of connections, and of operations for which a caller waits.
//
// A program makes one [Tracer] from the provider of its other spans, and calls the Tracer's methods instead of those of the
// RNIC and of the QP:
//
//	t := tracing.New(otel.GetTracerProvider())
//	qp, err := t.Dial(ctx, rnic, "tcp", addr, cfg) // rnic.Dial, with a span for each stage
//	err = t.QP(qp).RDMARead(ctx, dst, src)         // qp.RDMARead, with a span
//
// The parent of each span is the span of the context. Package iwarp does not depend on this package: a program that does not import
// it has neither its costs nor its modules.
//
// # Spans
//
// Dial and Client make "iwarp.dial" and "iwarp.client", with a child for each [iwarp.SetupStage] that the connection goes
// through: "iwarp.setup.qp", "iwarp.setup.dial" (TCP or SCTP connects), "iwarp.setup.secure" (TLS), "iwarp.setup.request",
// "iwarp.setup.reply", "iwarp.setup.confirm" and "iwarp.setup.ready". The exchange of an Authenticator happens in the stages
// request, reply and confirm, because its messages are parts of the start-up frames. Accept makes "iwarp.accept",
// which ends when the peer has proved itself. TLS and the Request come before the program learns of
// the connection, and have no span; refusals there are counted, see [iwarp.RNIC.Stats].
//
// An operation of [QP] makes a span that is named after it, such as "iwarp.rdma_write". It ends when the method returns, so the
// span of an RDMA Write does not show that the octets have arrived. Operations that are posted, and complete on a CQ, have no span:
// they have no context, and there may be millions in a second. [Executor] makes the spans of package rma.
//
// # Attributes
//
// The address of the peer, the transport and the error are in the attributes that the semantic conventions of
// OpenTelemetry define for them, everything else is in attributes that begin with iwarp: see docs/metrics.md. No attribute
// contains addresses of memory, keys or payload.
//
// # Propagation
//
// The context of a trace is not sent to the peer automatically. Private data and messages belong to the protocol of the application;
// a peer that does not expect additional octets in front of them would misread them. An application whose protocol has a place for
// the context puts it there, with OpenTelemetry's package propagation, and calls Accept with the context that it has received: see
// the example of [Tracer.Accept].
package tracing
