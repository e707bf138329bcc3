package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/internal/equal"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/setup"
)

// A ConnRequest is a connection whose initiator has asked for RDMA mode and waits
// for the answer. It must be answered once, with Accept or Reject.
type ConnRequest struct {
	rnic     *RNIC
	request  *setup.Request
	answered atomic.Bool
	auth     Authenticator // of the listener
	peer     Peer
	known    bool               // peer is
	qp       atomic.Pointer[QP] // that accepts it, and then knows the peer; nil: there is none yet
}

func newConnRequest(r *RNIC, q *setup.Request, auth Authenticator) *ConnRequest {
	cr := &ConnRequest{rnic: r, request: q, auth: auth}
	cr.peer, cr.known = cr.identity(new(sync.Mutex)).Peer()
	return cr
}

var errOtherAuth = errors.New("iwarp: QPConfig.Auth is not the Authenticator of the listener")

var errAnswered = errors.New("iwarp: the connection request was answered before")

// identity is what the request tells of its initiator, under a lock of its user.
func (cr *ConnRequest) identity(guard sync.Locker) *authn.Identity[Peer] {
	session, _ := cr.request.Sealer().(AuthSession)
	return authn.ForResponder(guard, &authVerbs, session, cr.request.Secured())
}

// Peer is that of [QP.Peer]. If the initiator must prove itself by its first message, the identity
// is certain only when Accept has returned.
func (cr *ConnRequest) Peer() (Peer, bool) {
	if qp := cr.qp.Load(); qp != nil {
		return qp.Peer()
	}
	return cr.peer, cr.known
}

// PrivateData returns what the initiator's application sent with its Request. It
// is data of a peer that is not authenticated, unless the listener has an Authenticator; even
// then it may be that of an older Request, until Accept has returned. It does not include an
// offer of RDMA Commit.
func (cr *ConnRequest) PrivateData() []byte {
	_, private, _ := commit.CutOffer(cr.request.PrivateData())
	return private
}

// RemoteAddr returns the address of the initiator.
func (cr *ConnRequest) RemoteAddr() net.Addr { return cr.request.RemoteAddr() }

// LocalAddr returns the address that the initiator connected to.
func (cr *ConnRequest) LocalAddr() net.Addr { return cr.request.LocalAddr() }

// IRD and ORD are what the initiator told of itself, -1 if it did not (RFC 6581
// section 9.1).
func (cr *ConnRequest) IRD() int { return cr.request.PeerIRD() }

// ORD is described with IRD.
func (cr *ConnRequest) ORD() int { return cr.request.PeerORD() }

// Accept runs qc.Setup, sends the Reply, and returns an established QP. qc.TLS is
// not used here. If it fails the connection is closed; where it fails before it sends the Reply the
// connection is rejected before, as by Reject.
//
// Where the Authenticator wants the initiator to prove itself by its first message, Accept
// returns when that was verified, and fails with an error that matches ErrAuth if anything else
// comes, or nothing within ListenConfig.SetupTimeout. Until then no memory of the PD can be
// reached, nothing is sent, and no Event tells of the QP. See [Listener.Serve].
func (cr *ConnRequest) Accept(ctx context.Context, qc *QPConfig) (*QP, error) {
	if cr.answered.Swap(true) {
		return nil, errAnswered
	}
	qp, err := cr.rnic.newQP(qc)
	if err == nil && qp.cfg.Auth != nil && !equal.Values(qp.cfg.Auth, cr.auth) {
		err = errOtherAuth
		qp.abandon(err)
	}
	if err != nil {
		cr.request.Fail(err)
		return nil, err
	}
	qp.identity = cr.identity(&qp.mu)
	cr.qp.Store(qp)
	err = setup.OrUndo(qp.abandon, func() error { return cr.request.Accept(ctx, qp.responder(cr.request.PrivateData())) })
	if err != nil {
		return nil, fmt.Errorf("iwarp: accept %v: %w", cr.RemoteAddr(), errtext.Clause(err))
	}
	return qp, nil
}

// Reject refuses the connection, with at most 248 octets of private data, 508 over SCTP, for
// the initiator's application, and closes it. More are an error, and the connection is refused without them.
func (cr *ConnRequest) Reject(private []byte) error { return cr.RejectDepths(private, -1, -1) }

// RejectDepths is Reject because of too small an IRD or ORD of the initiator's: it tells
// what this side would have needed as its own IRD and ORD, -1 where the initiator's value
// would have been accepted (RFC 6581 section 9.1). The initiator finds them in its
// [RejectError], and may try again.
func (cr *ConnRequest) RejectDepths(private []byte, ird, ord int) error {
	if cr.answered.Swap(true) {
		return errAnswered
	}
	if err := cr.request.Reject(ird, ord, private); err != nil {
		return fmt.Errorf("iwarp: reject %v: %w", cr.RemoteAddr(), errtext.Clause(err))
	}
	return nil
}
