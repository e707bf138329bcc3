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

// A ConnRequest is a connection whose initiator has requested RDMA mode and is waiting
// for the answer. It must be answered once, with Accept or Reject.
type ConnRequest struct {
	rnic     *RNIC
	request  *setup.Request
	answered atomic.Bool
	auth     Authenticator // of the listener
	peer     Peer
	known    bool               // whether peer is known
	qp       atomic.Pointer[QP] // the QP that accepts the request, and then knows the peer; nil before
}

func newConnRequest(r *RNIC, q *setup.Request, auth Authenticator) *ConnRequest {
	cr := &ConnRequest{rnic: r, request: q, auth: auth}
	cr.peer, cr.known = cr.identity(new(sync.Mutex)).Peer()
	return cr
}

var errOtherAuth = errors.New("iwarp: QPConfig.Auth is not the Authenticator of the listener")

var errAnswered = errors.New("iwarp: the connection request was answered before")

// identity returns what the request says about its initiator. guard is a lock of the identity's user.
func (cr *ConnRequest) identity(guard sync.Locker) *authn.Identity[Peer] {
	session, _ := cr.request.Sealer().(AuthSession)
	return authn.ForResponder(guard, &authVerbs, session, cr.request.Secured())
}

// Peer returns the identity of the initiator, as [QP.Peer] does. If the initiator must prove its
// identity by its first message, the identity is certain only when Accept has returned.
func (cr *ConnRequest) Peer() (Peer, bool) {
	if qp := cr.qp.Load(); qp != nil {
		return qp.Peer()
	}
	return cr.peer, cr.known
}

// PrivateData returns what the initiator's application sent with its Request. It is not
// authenticated unless the listener has an Authenticator. Even then it may come from an older,
// replayed Request until Accept has returned. It does not include an offer of RDMA Commit.
func (cr *ConnRequest) PrivateData() []byte {
	_, private, _ := commit.CutOffer(cr.request.PrivateData())
	return private
}

// RemoteAddr returns the address of the initiator.
func (cr *ConnRequest) RemoteAddr() net.Addr { return cr.request.RemoteAddr() }

// LocalAddr returns the address that the initiator connected to.
func (cr *ConnRequest) LocalAddr() net.Addr { return cr.request.LocalAddr() }

// IRD returns the IRD that the initiator stated as its own, or -1 if it stated none (RFC 6581
// section 9.1).
func (cr *ConnRequest) IRD() int { return cr.request.PeerIRD() }

// ORD returns the ORD that the initiator stated as its own, or -1 if it stated none.
func (cr *ConnRequest) ORD() int { return cr.request.PeerORD() }

// Accept runs qc.Setup, sends the Reply, and returns an established QP. It does not use qc.TLS.
// If Accept fails, the connection is closed; if it fails before it sends the Reply, the
// connection is first rejected, as by Reject.
//
// If the Authenticator requires the initiator to prove its identity by its first message, Accept
// returns when that message has been verified. It fails with an error that matches ErrAuth if
// anything else arrives, or nothing within ListenConfig.SetupTimeout. Until then no memory of the
// PD can be accessed, nothing is sent, and no Event reports the QP. See [Listener.Serve].
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

// Reject refuses the connection and closes it. private is for the initiator's application: at most
// 248 octets, or 508 over SCTP. More is an error, and the connection is then refused without them.
func (cr *ConnRequest) Reject(private []byte) error { return cr.RejectDepths(private, -1, -1) }

// RejectDepths is like Reject, for an initiator whose IRD or ORD is too small. It sends the
// IRD and ORD that this side would have needed as its own, or -1 where the initiator's value
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
