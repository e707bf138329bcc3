package iwarp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/endwait"
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
//
// From inside a method of a [Buffer] Shutdown returns at once, with an error, and goes on by
// itself.
func (r *RNIC) Shutdown(ctx context.Context) error {
	if err := endwait.OutsideBuffer("the RNIC shuts down"); err != nil {
		go func() { _ = r.Shutdown(ctx) }()
		return err
	}
	qps := r.refuseNew()
	ends := make([]end, len(qps))
	var wg sync.WaitGroup
	for i, qp := range qps {
		qp.drain()
		wg.Go(func() { ends[i] = qp.shutDown(ctx) })
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
	r.life = max(r.life, rnicShutDown)
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	r.setups.Refuse(errShutdown)
	return qps
}

// A life is how far an RNIC has got: it never goes back.
type life uint8

const (
	rnicOpen     life = iota
	rnicShutDown      // no new connections
	rnicClosed        // and nothing else that is new
)

// refusal is what new connections are told, nil if they are welcome. mu is held.
func (r *RNIC) refusal() error {
	switch r.life {
	case rnicShutDown:
		return errShutdown
	case rnicClosed:
		return errRNICClosed
	default:
		return nil
	}
}

// welcome is refusal without mu.
func (r *RNIC) welcome() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal()
}

// An end is how a QP has ended in Shutdown.
type end struct {
	aborted bool
	err     error
}

// shutDown ends a QP to which nobody can post any more, and tells how.
func (qp *QP) shutDown(ctx context.Context) end {
	cause := &abortedError{ctx}
	if !qp.endWithin(ctx, cause) {
		return end{err: qp.Err()}
	}
	if err := qp.Err(); !errors.Is(err, cause) { // it has ended on its own
		return end{err: err}
	}
	return end{aborted: true}
}

// An abortedError is the cause of the end of a QP for which ctx did not suffice.
type abortedError struct{ ctx context.Context }

func (e *abortedError) Error() string { return "iwarp: aborted by shutdown: " + e.ctx.Err().Error() }
func (e *abortedError) Unwrap() error { return e.ctx.Err() }

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
