// Package tracing records spans of OpenTelemetry: of the set-up of connections, and of operations that a caller waits for.
//
// A program makes one [Tracer], of the provider that its other spans come from, and calls its methods in place of those of the
// RNIC and of the QP:
//
//	t := tracing.New(otel.GetTracerProvider())
//	qp, err := t.Dial(ctx, rnic, "tcp", addr, cfg) // rnic.Dial, with a span for each stage
//	err = t.QP(qp).RDMARead(ctx, dst, src)         // qp.RDMARead, with a span
//
// The parent of each span is that of the context. Package iwarp knows nothing of this package: a program that does not import
// it has neither its costs nor its modules.
//
// # Spans
//
// Dial and Client make "iwarp.dial" and "iwarp.client", with a child for each [iwarp.SetupStage] that the connection goes
// through: "iwarp.setup.qp", "iwarp.setup.dial" (TCP or SCTP connects), "iwarp.setup.secure" (TLS), "iwarp.setup.request",
// "iwarp.setup.reply", "iwarp.setup.confirm" and "iwarp.setup.ready". The exchange of an Authenticator is in the last of
// these but one and in the two before it, because its messages are parts of the start-up frames. Accept makes "iwarp.accept",
// which ends when the peer has proved itself. What comes before it, TLS and the Request, comes before the program is told of
// the connection: refusals there are counted, see [iwarp.RNIC.Stats].
//
// An operation of [QP] makes a span that is named after it, as "iwarp.rdma_write". It ends when the method returns, so that of
// an RDMA Write does not tell that the octets have arrived. Those that are posted, and complete on a CQ, have no span: they
// have no context, and there may be millions in a second. [Executor] makes those of package rma.
//
// # Attributes
//
// The address of the peer, the transport and the error are told by the attributes that the semantic conventions of
// OpenTelemetry have for them, all else by attributes that begin with iwarp: see docs/metrics.md. The addresses of memory, keys
// and payload are in none.
//
// # Propagation
//
// The context of a trace does not go to the peer by itself. Private data and messages belong to the protocol of the application;
// octets in front of them would be read by a peer that does not expect them. An application whose protocol has a place for
// it puts the context there, with package propagation of OpenTelemetry, and calls Accept with the context that it has found: see
// the example of [Tracer.Accept].
package tracing
