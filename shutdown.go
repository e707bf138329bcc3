package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

var errShutdown = fmt.Errorf("iwarp: the RNIC is shutting down: %w", net.ErrClosed)

// Shutdown ends everything gracefully, and then closes the RNIC: what this side has posted
// reaches the peers, which [RNIC.Close] prevents. From the call on Dial, Client, Listen,
// Server and Accept fail, and so does what they have begun; listeners are closed, connection
// requests that were not accepted dropped, and posts to QPs refused, all with errors that
// match net.ErrClosed. Then, of all QPs at the same time, the work that is queued and the
// RDMA Reads of the peer are finished, and each connection is ended as by [QP.Close], though
// within ctx and not Config.CloseTimeout. It returns when every peer has ended its half, too,
// which tells that it has taken all messages; the channel of Events is closed then. (A
// net.Conn of Client or Server that has no CloseWrite can only be closed as a whole: that
// tells less.)
//
// A peer that does not read or does not end its half, a Read that is not answered, and a
// responder's messages to which no message of the initiator has opened the way, are waited
// for until ctx ends, and without a bound if it does not: give it one. QPs that are left then
// are aborted. Memory windows do not hold Shutdown up, as they do Close: they stay in force
// until the end of their QP and go with it.
//
// The error tells how many QPs were aborted, and matches that of ctx; and how many have
// ended with an error of their own meanwhile, with the first of those. nil: all of them, if
// there were any, have ended gracefully. Shutdown may be called at the same time as Close,
// which aborts what is left, and again; an RNIC that was closed has nothing to shut down.
func (r *RNIC) Shutdown(ctx context.Context) error {
	qps := r.refuseNew()
	ends := make([]end, len(qps))
	var wg sync.WaitGroup
	for i, qp := range qps {
		qp.closing.Store(true)
		qp.kick()
		wg.Go(func() { ends[i] = qp.endWithin(ctx) })
	}
	wg.Wait()
	err := shutdownError(ctx, ends)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

// refuseNew ends what is no established QP, and returns those that are.
func (r *RNIC) refuseNew() []*QP {
	r.mu.Lock()
	if r.refused == nil {
		r.refused = errShutdown
	}
	qps := make([]*QP, 0, len(r.qps))
	for qp := range r.qps {
		qps = append(qps, qp)
	}
	var closers []interface{ Close() error }
	for l := range r.listeners {
		closers = append(closers, l)
	}
	for c := range r.pending {
		closers = append(closers, c)
	}
	r.mu.Unlock()
	for _, c := range closers {
		_ = c.Close()
	}
	return qps
}

// welcome returns why there are no new connections any more, nil if there may be.
func (r *RNIC) welcome() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// An end is how a QP has ended in Shutdown.
type end struct {
	aborted bool
	err     error
}

// endWithin ends a QP to which nobody can post any more: gracefully, or when ctx ends by
// an abort, for whose end it does not wait.
func (qp *QP) endWithin(ctx context.Context) end {
	select {
	case <-qp.done:
		return end{err: qp.Err()}
	case <-qp.drained:
		qp.endSending()
	case <-ctx.Done():
	}
	select {
	case <-qp.done:
		return end{err: qp.Err()}
	case <-ctx.Done():
	}
	cause := fmt.Errorf("iwarp: aborted by shutdown: %w", ctx.Err())
	qp.abort(cause)
	if err := qp.Err(); !errors.Is(err, cause) { // it has ended on its own
		return end{err: err}
	}
	return end{aborted: true}
}

func shutdownError(ctx context.Context, ends []end) error {
	aborted, failed := 0, 0
	var first error
	for _, e := range ends {
		switch {
		case e.aborted:
			aborted++
		case e.err != nil:
			failed++
			if first == nil {
				first = e.err
			}
		}
	}
	switch {
	case aborted > 0 && failed > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d were aborted (%w), and %d ended with an error (%w)", len(ends), aborted, ctx.Err(), failed, first)
	case aborted > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d were aborted: %w", len(ends), aborted, ctx.Err())
	case failed > 0:
		return fmt.Errorf("iwarp: shutdown: of %d queue pairs %d ended with an error: %w", len(ends), failed, first)
	}
	return nil
}
