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

// A Request is a connection whose initiator waits for the answer. It is to be accepted,
// rejected or closed once.
type Request struct {
	manager *Manager
	offer   offer
	timeout time.Duration // for the answer to leave
	release func()        // see leave
	left    sync.Once

	seal        Sealer // nil: none
	sealed      sync.Once
	established bool // Establish was called
}

// An offer is what an initiator has asked for, over whatever lower layer.
type offer interface {
	PrivateData() []byte
	PeerIRD() int
	PeerORD() int
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// Open opens what was asked for, before anything of it is believed.
	Open(seal transport.Sealer) error
	// accept answers.
	accept(ctx context.Context, l *Local) (transport.LLP, *mpa.Terms, error)
	// refuse tells that Open has not accepted what was asked for.
	refuse(ctx context.Context, cause error) error
	reject(ctx context.Context, ird, ord int, private []byte) error
	Close() error
}

// request makes a Request of an offer. The Manager watches it until it is answered. release
// is called once, when the connection is no longer in set-up, and also after an error.
func (m *Manager) request(o offer, timeout time.Duration, release func()) (*Request, error) {
	if err := m.watch(o); err != nil {
		_ = o.Close()
		release()
		return nil, err
	}
	return &Request{manager: m, offer: o, timeout: timeout, release: release}, nil
}

// leave tells, once, that the connection is no longer in set-up.
func (q *Request) leave() {
	q.left.Do(func() {
		q.manager.unwatch(q.offer)
		q.release()
	})
}

// PrivateData is the initiator's.
func (q *Request) PrivateData() []byte { return q.offer.PrivateData() }

// Secured is the outcome of the handshake of TLS, nil without TLS.
func (q *Request) Secured() *tls.ConnectionState {
	if o, ok := q.offer.(*mpaOffer); ok {
		return o.secured
	}
	return nil
}

// PeerIRD is what the initiator told of itself, -1 if it did not.
func (q *Request) PeerIRD() int { return q.offer.PeerIRD() }

// PeerORD is what the initiator told of itself, -1 if it did not.
func (q *Request) PeerORD() int { return q.offer.PeerORD() }

// LocalAddr is the address that the initiator connected to.
func (q *Request) LocalAddr() net.Addr { return q.offer.LocalAddr() }

// RemoteAddr is that of the initiator.
func (q *Request) RemoteAddr() net.Addr { return q.offer.RemoteAddr() }

// Accept calls Prepare, sends the Reply, and returns when Establish has. If it fails the
// connection is closed. Where no Reply was begun one that refuses the connection goes out before:
// otherwise the initiator would take this side for one that does not know its revision of MPA, and
// connect again at once.
func (q *Request) Accept(ctx context.Context, l *Local) error {
	defer q.leave()
	defer q.closeSeal()
	return OrUndo(q.fail, func() error { return q.accept(ctx, l) })
}

// Fail ends the connection of a Request that cannot be accepted because of err, as Accept does.
func (q *Request) Fail(err error) {
	defer q.leave()
	defer q.closeSeal()
	q.fail(err)
}

// fail ends the connection of a set-up that has failed with err.
func (q *Request) fail(err error) {
	if !q.established {
		_ = q.reject(-1, -1, nil) // it fails where a Reply was begun
	}
	_ = q.offer.Close()
	q.manager.refuse(err)
}

// prepare calls Prepare, which is the program's: the end of the RNIC does not wait for it. It refuses a session
// meanwhile, before the end of the association. A connection is refused when Prepare has returned.
func (q *Request) prepare(ctx context.Context, l *Local) error {
	if _, ok := q.offer.(sessionOffer); ok {
		return q.manager.Within(ctx, l.prepare)
	}
	q.manager.unwatch(q.offer) // what follows ends with Refuse, too
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

// Reject refuses the connection, with the depths that this side would have needed, -1 where
// those of the initiator would have done, and closes it. Private data that are too long are an error:
// the Reply has none then.
func (q *Request) Reject(ird, ord int, private []byte) error {
	err := q.reject(ird, ord, private)
	if err != nil {
		_ = q.reject(ird, ord, nil) // it fails where a Reply was begun
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
