package setup

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A Request is a connection whose initiator waits for the answer. It must be accepted,
// rejected or closed once.
type Request struct {
	manager *Manager
	offer   offer
	timeout time.Duration // for sending the answer
	release func()        // see leave
	left    sync.Once

	seal        Sealer // nil: none
	sealed      sync.Once
	established bool // Establish was called
}

// An offer is the request of an initiator, over any lower layer.
type offer interface {
	PrivateData() []byte
	PeerIRD() int
	PeerORD() int
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// Open authenticates the request, before any of its contents is trusted.
	Open(seal transport.Sealer) error
	// accept sends the answer.
	accept(ctx context.Context, l *Local) (transport.LLP, *mpa.Terms, error)
	// refuse tells the initiator that Open has not accepted the request.
	refuse(ctx context.Context, cause error) error
	reject(ctx context.Context, ird, ord int, private []byte) error
	Close() error
}

// request returns a Request for an offer. The Manager watches it until it is answered. release
// is called once, when the connection is no longer in set-up, and also after an error.
func (m *Manager) request(o offer, timeout time.Duration, release func()) (*Request, error) {
	if err := m.watch(o); err != nil {
		_ = o.Close()
		release()
		return nil, err
	}
	return &Request{manager: m, offer: o, timeout: timeout, release: release}, nil
}

// leave records, once, that the connection is no longer in set-up.
func (q *Request) leave() {
	q.left.Do(func() {
		q.manager.unwatch(q.offer)
		q.release()
	})
}

// PrivateData returns the private data of the initiator.
func (q *Request) PrivateData() []byte { return q.offer.PrivateData() }

// Secured returns the outcome of the TLS handshake, nil without TLS.
func (q *Request) Secured() *tls.ConnectionState {
	if o, ok := q.offer.(*mpaOffer); ok {
		return o.secured
	}
	return nil
}

// PeerIRD returns the IRD that the initiator has sent, -1 if it sent none.
func (q *Request) PeerIRD() int { return q.offer.PeerIRD() }

// PeerORD returns the ORD that the initiator has sent, -1 if it sent none.
func (q *Request) PeerORD() int { return q.offer.PeerORD() }

// LocalAddr returns the address that the initiator connected to.
func (q *Request) LocalAddr() net.Addr { return q.offer.LocalAddr() }

// RemoteAddr returns the address of the initiator.
func (q *Request) RemoteAddr() net.Addr { return q.offer.RemoteAddr() }

// Accept calls Prepare, sends the Reply, and returns when Establish has returned. If it fails, the
// connection is closed. If no Reply was begun by then, a Reply that refuses the connection is sent
// first: otherwise the initiator would conclude that this side does not know its MPA revision, and
// connect again at once.
func (q *Request) Accept(ctx context.Context, l *Local) error {
	defer q.leave()
	defer q.closeSeal()
	return OrUndo(q.fail, func() error { return q.accept(ctx, l) })
}

// Fail ends the connection of a Request that cannot be accepted because of err, like a failed Accept.
func (q *Request) Fail(err error) {
	defer q.leave()
	defer q.closeSeal()
	q.fail(err)
}

// fail ends the connection of a set-up that has failed with err.
func (q *Request) fail(err error) {
	if !q.established {
		_ = q.reject(-1, -1, nil) // fails if a Reply was begun
	}
	_ = q.offer.Close()
	q.manager.refuse(err)
}

// prepare calls Prepare, a function of the application, for which the end of the RNIC does not wait. If the RNIC
// ends meanwhile, it refuses a session before it ends the association, and a connection when Prepare has returned.
func (q *Request) prepare(ctx context.Context, l *Local) error {
	if _, ok := q.offer.(sessionOffer); ok {
		return q.manager.Within(ctx, l.prepare)
	}
	q.manager.unwatch(q.offer) // Refuse ends the steps that follow, too
	return q.manager.begin(ctx, l.prepare)
}

func (q *Request) accept(ctx context.Context, l *Local) error {
	if err := q.prepare(ctx, l); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	ctx, done, err := q.manager.exchange(ctx, q.offer)
	if err != nil {
		return err
	}
	defer done()
	return q.manager.endedBy(ctx, q.establish(ctx, l))
}

func (q *Request) establish(ctx context.Context, l *Local) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	llp, terms, err := q.offer.accept(ctx, l)
	if err != nil {
		return err
	}
	q.established = true
	q.manager.logPath(llp.Path())
	return l.Establish(ctx, llp, terms)
}

// Reject refuses the connection, and closes it. ird and ord are the depths that this side would have
// needed, -1 if the initiator's depth would have sufficed. If private is too long, Reject returns an
// error, and the Reply contains no private data.
func (q *Request) Reject(ird, ord int, private []byte) error {
	err := q.reject(ird, ord, private)
	if err != nil {
		_ = q.reject(ird, ord, nil) // fails if a Reply was begun
	}
	q.manager.outcomes.refused[counters.CauseRejected].Add(1)
	q.Close()
	return err
}

// reject sends the Reply of Reject.
func (q *Request) reject(ird, ord int, private []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	return q.offer.reject(ctx, ird, ord, private)
}

// Close ends the connection of a request that was not accepted.
func (q *Request) Close() {
	_ = q.offer.Close()
	q.closeSeal()
	q.leave()
}
