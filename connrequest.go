package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/commit"
)

// A ConnRequest is a connection whose initiator has asked for RDMA mode and waits
// for the answer. It must be answered once, with Accept or Reject.
type ConnRequest struct {
	rnic    *RNIC
	offer   offer
	timeout time.Duration // for the answer to leave
	release func()

	mu       sync.Mutex
	answered bool
}

var errAnswered = errors.New("iwarp: the connection request was answered before")

// PrivateData returns what the initiator's application sent with its Request. It
// is data of a peer that nobody has authenticated. An offer of RDMA Commit is no part of
// it.
func (cr *ConnRequest) PrivateData() []byte {
	_, private, _ := commit.CutOffer(cr.offer.PrivateData())
	return private
}

// RemoteAddr returns the address of the initiator.
func (cr *ConnRequest) RemoteAddr() net.Addr { return cr.offer.RemoteAddr() }

// LocalAddr returns the address that the initiator connected to.
func (cr *ConnRequest) LocalAddr() net.Addr { return cr.offer.LocalAddr() }

// IRD and ORD are what the initiator told of itself, -1 if it did not (RFC 6581
// section 9.1).
func (cr *ConnRequest) IRD() int { return cr.offer.PeerIRD() }

// ORD is described with IRD.
func (cr *ConnRequest) ORD() int { return cr.offer.PeerORD() }

// Accept runs qc.Setup, sends the Reply, and returns an established QP. qc.TLS is
// not used here. If it fails the connection is closed.
func (cr *ConnRequest) Accept(ctx context.Context, qc *QPConfig) (*QP, error) {
	if err := cr.answer(); err != nil {
		return nil, err
	}
	defer cr.done()
	qp, err := cr.rnic.newQP(qc)
	if err != nil {
		cr.close()
		return nil, err
	}
	if err := cr.accept(ctx, qp); err != nil {
		cr.close()
		qp.abandon(err)
		return nil, fmt.Errorf("iwarp: accept %v: %w", cr.RemoteAddr(), clause{err})
	}
	return qp, nil
}

func (cr *ConnRequest) accept(ctx context.Context, qp *QP) error {
	if err := qp.setup(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cr.timeout)
	defer cancel()
	ctx, done, err := cr.rnic.exchange(ctx)
	if err != nil {
		return err
	}
	defer done()
	cr.rnic.unwatch(cr.offer)
	return endedBy(ctx, cr.offer.accept(ctx, qp))
}

// Reject refuses the connection, with at most 248 octets of private data for the
// initiator's application, and closes it.
func (cr *ConnRequest) Reject(private []byte) error { return cr.RejectDepths(private, -1, -1) }

// RejectDepths is Reject because of too small an IRD or ORD of the initiator's: it tells
// what this side would have needed as its own IRD and ORD, -1 where the initiator's wish
// would have done (RFC 6581 section 9.1). The initiator finds them in its
// [RejectError], and may try again.
func (cr *ConnRequest) RejectDepths(private []byte, ird, ord int) error {
	if err := cr.answer(); err != nil {
		return err
	}
	defer cr.done()
	ctx, cancel := context.WithTimeout(context.Background(), cr.timeout)
	defer cancel()
	err := cr.offer.reject(ctx, ird, ord, private)
	cr.close()
	if err != nil {
		return fmt.Errorf("iwarp: reject %v: %w", cr.RemoteAddr(), clause{err})
	}
	return nil
}

// answer takes the right to answer.
func (cr *ConnRequest) answer() error {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.answered {
		return errAnswered
	}
	cr.answered = true
	return nil
}

// close ends the connection of a request that was not accepted.
func (cr *ConnRequest) close() {
	_ = cr.offer.Close()
	_ = cr.answer()
	cr.done()
}

// done tells that the connection is no longer in set-up. It may be called again.
func (cr *ConnRequest) done() {
	cr.mu.Lock()
	release := cr.release
	cr.release = nil
	cr.mu.Unlock()
	if release != nil {
		cr.rnic.unwatch(cr.offer)
		release()
	}
}
