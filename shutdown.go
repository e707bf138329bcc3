package iwarp

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/endwait"
)

var errShutdown = fmt.Errorf("iwarp: the RNIC is shutting down: %w", net.ErrClosed)

// Shutdown ends all QPs gracefully, and then closes the RNIC. Unlike [RNIC.Close] it does not
// lose work that this side has posted: the work reaches the peers, or the error says that a QP
// has ended before.
//
// From the call on Dial, Client, Listen, Server and Accept fail, and so do their calls in
// progress. Listeners are closed, connection requests that were not accepted are dropped, and
// posts to QPs are refused. All these errors match net.ErrClosed. Then, for all QPs at the
// same time, Shutdown completes the work that is queued and the RDMA Reads of the peer, and
// ends the connection as [QP.Close] does, but within ctx instead of Config.CloseTimeout. It
// returns when every peer has ended its half, too. A peer that ends its half in response has
// received all messages. If a peer ended its half by itself, it is unknown whether it received
// what was in transit then. The channel of Events is then closed.
//
// Some QPs may not end before ctx: their peer does not read or does not end its half, does not
// answer a Read, or has not sent the initiator's first message, for which a responder's
// messages wait. Without a deadline Shutdown waits for them indefinitely. When ctx ends the
// QPs that are left are aborted. Unlike [QP.Close], Shutdown does not fail if memory windows
// are bound: they stay in effect until the end of their QP.
//
// The error reports how many QPs were aborted, and matches the error of ctx. It also reports
// how many QPs ended with an error of their own, and the first of these errors. It is nil if
// all QPs have ended gracefully. Shutdown may be called more than once, and at the same time
// as Close, which aborts the QPs that are left. On a closed RNIC it does nothing.
//
// If Shutdown is called from inside a method of a [Buffer] or a Flusher, it returns an error at
// once, and continues in the background.
func (r *RNIC) Shutdown(ctx context.Context) error {
	if err := endwait.OutsideBuffer("the RNIC shuts down"); err != nil {
		go func() { _ = r.Shutdown(ctx) }()
		return err
	}
	qps := r.refuseNew()
	ends := make([]endwait.Outcome, len(qps))
	var wg sync.WaitGroup
	for i, qp := range qps {
		qp.drain()
		wg.Go(func() {
			cut := &endwait.Cut{Ctx: ctx}
			qp.endWithin(ctx, cut)
			ends[i] = endwait.OutcomeOf(qp.Err(), cut)
		})
	}
	wg.Wait()
	err := endwait.Summary(ctx, ends)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

// refuseNew ends everything that is not an established QP, and returns the established QPs.
func (r *RNIC) refuseNew() []*QP {
	r.mu.Lock()
	r.life = max(r.life, rnicShutDown)
	qps := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()
	r.setups.Refuse(errShutdown)
	return qps
}

// A life is the stage of an RNIC's life. It only advances.
type life uint8

const (
	rnicOpen     life = iota
	rnicShutDown      // no new connections
	rnicClosed        // no new objects at all
)

// refusal returns the error for new connections, or nil if they are accepted. mu is held.
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

// welcome is like refusal, for a caller that does not hold mu.
func (r *RNIC) welcome() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal()
}
