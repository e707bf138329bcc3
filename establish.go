package iwarp

import (
	"cmp"
	"context"

	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// establish moves the QP to RTS at the end of the set-up, whose context is ctx. If the
// negotiation has failed, or this side cannot continue, it sends a Terminate instead of the
// RTR, and the QP ends (RFC 6581 section 9). A responder that may not send yet only ends
// the connection.
func (qp *QP) establish(ctx context.Context, llp transport.LLP, terms *mpa.Terms, rtr transport.RTR) error {
	r := qp.rnic
	fault := terms.Fault
	if fault == nil {
		fault = setup.LocalFailure(ctx)
	}
	qp.llp, qp.terms = llp, terms
	qp.agree()
	c := rdmap.Config{
		Table: r.table, Scope: stag.Scope{PD: qp.cfg.PD.id, Stream: qp.id},
		IRD: terms.IRD, ORD: terms.ORD, SendDepth: qp.cfg.SendDepth + len(siwWaits),
		Receives: qp.receives(), Publish: qp.rq.push, Events: events{qp}, RTR: rtr, Window: qpconn.Window(llp),
		Extensions: qp.commits.extensions(),
	}
	qp.window.Configure(&c)
	if err := qp.identity.Configure(&c, terms); err != nil && fault == nil {
		fault = &transport.Fault{Code: transport.MPALocalCatastrophic, Err: err}
	}
	if fault != nil {
		c.RTR, c.First = 0, nil
	}
	qp.stream = rdmap.New(c)
	conn := qpconn.New(qpconn.Config{
		LLP: llp, Stream: qp.stream, Owner: owner{qp}, Sweeper: r.sweeper, Tasks: &r.tasks, ReceiveWait: qp.cfg.RNRWait, StallWait: qp.cfg.StallWait,
	})
	r.mu.Lock()
	qp.latencies = r.tally.Made(llp.Path())
	qp.start(conn)
	r.qps[qp] = struct{}{}
	if err := r.refusal(); err != nil && fault == nil { // RNIC.Close, or Shutdown, does not know the QP
		fault = &transport.Fault{Code: transport.MPALocalCatastrophic, Err: err}
	}
	r.mu.Unlock()
	if fault != nil {
		qp.fail(fault)
	}
	conn.Start()
	return outcome(ctx, qp, fault)
}

// outcome waits until the outcome of a set-up is certain. After a fault it returns an error even if the QP has ended
// gracefully: Shutdown, or QP.Close by a program that knows the QP from Setup, can come before the fault is reported.
func outcome(ctx context.Context, qp *QP, fault *transport.Fault) error {
	if fault == nil {
		return qp.identity.Admit(ctx, authn.Connection{Done: qp.done, Abort: qp.abort, Err: qp.Err})
	}
	<-qp.done
	return cmp.Or(qp.Err(), qpconn.EndError(fault))
}

// abandon ends a QP whose set-up has failed.
func (qp *QP) abandon(err error) {
	if qp.conn.Load() != nil { // it has ended with the error of the negotiation, or the program has panicked since
		qp.abort(err)
		_ = qp.waitEnded(abortTime) // so that what the caller is told about the connection is true
		return
	}
	qp.mu.Lock()
	qp.err = qpconn.EndError(err)
	qp.mu.Unlock()
	qp.identity.End(false)
	qp.flushEarly()
	qp.rq.end(StatusFlushed)
	qp.rq.drop()
	holds.Give(qp)
	close(qp.done)
}
