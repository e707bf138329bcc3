package sctp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// A Request is a session that the peer has requested, to be accepted or rejected once.
type Request struct {
	s     Stream
	in    session
	asked *control
	seal  transport.Sealer // of the answer; nil: none
	shut  error            // of Open

	mu    sync.Mutex // held while a refusal is sent: the association may end when Close has returned
	taken bool       // answered
}

// ReadRequest waits until the peer requests a session on s. ctx bounds the wait. It reads
// only one message: the initiator sends nothing that could arrive before it (RFC 5043
// section 6.6). After an error s has been released.
func ReadRequest(ctx context.Context, s Stream) (*Request, error) {
	in, asked, err := await(ctx, s, false)
	if err == nil && asked.function != Initiate && asked.function != EnhancedInitiate {
		err = violation("%v where an Initiate begins the session", asked.function)
	}
	if _, ok := errors.AsType[*ViolationError](err); ok {
		refuse(s, false)
		return nil, err
	}
	if err != nil {
		s.Release(in.in.top == 0)
		return nil, err
	}
	return &Request{s: s, in: in, asked: asked}, nil
}

// Open opens the request with seal, from its function code on, before anything in it is
// trusted: from then on PrivateData is the application's part, and seal wraps the answer.
// After an error of seal, which Open returns, the request can only be refused, with that error
// as the cause.
func (r *Request) Open(seal transport.Sealer) error {
	r.seal = seal
	r.shut = r.asked.open(seal)
	return r.shut
}

// PrivateData returns the private data of the initiator's ULP, without the enhanced data.
func (r *Request) PrivateData() []byte { return r.asked.private }

// PeerIRD returns how many Reads the initiator serves at a time, or -1 if it did not say.
func (r *Request) PeerIRD() int { return r.depth(r.asked.data.IRD) }

// PeerORD returns how many Reads the initiator wants to have outstanding, or -1 if it did
// not say.
func (r *Request) PeerORD() int { return r.depth(r.asked.data.ORD) }

func (r *Request) isEnhanced() bool { return r.asked.function.isEnhanced() }

func (r *Request) depth(d uint16) int {
	if !r.isEnhanced() {
		return -1
	}
	return enhanced.Told(d)
}

// rtrs is what a responder accepts as the first message: anything.
const rtrs = transport.RTRSend | transport.RTRWrite | transport.RTRRead

// Accept opens the session, in the form in which it was requested. ird and ord are the depths
// that this end supports and wants. The returned Conn owns the stream. After an error
// in the arguments nothing has been sent, and the request can still be rejected; after any
// other error the stream has been released.
func (r *Request) Accept(o Options, ird, ord int, private []byte) (*Conn, *Terms, error) {
	if err := r.checkOpened(o); err != nil {
		return nil, nil, err
	}
	seal := enhanced.Sealing(r.seal)
	if err := checkPrivate(len(private), seal, r.isEnhanced()); err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	taken := r.take()
	r.mu.Unlock()
	if !taken {
		return nil, nil, errAnswered
	}
	t := &Terms{
		IRD: max(ird, 0), ORD: max(ord, 0), PeerIRD: r.PeerIRD(), PeerORD: r.PeerORD(),
		PeerPrivateData: r.PrivateData(),
	}
	answer := control{function: Accept, private: private}
	if r.isEnhanced() {
		var agreed enhanced.Agreed
		answer.function = EnhancedAccept
		answer.data, agreed = enhanced.Respond(r.asked.data, enhanced.Limits{IRD: ird, ORD: ord, RTR: rtrs})
		t.IRD, t.ORD, t.RTR = agreed.IRD, agreed.ORD, agreed.RTR
	}
	msg, err := answer.sealed(seal)
	if err != nil {
		refuse(r.s, true)
		return nil, nil, err
	}
	if err := r.s.Send(PPIDControl, msg, true); err != nil {
		r.s.Release(false)
		return nil, nil, err
	}
	return newConn(r.s, r.in, false, o.MaxULPDU), t, nil
}

// Reject refuses the session at the request of the ULP, with private as the reason, and
// releases the stream. ird and ord are the depths that this end would have needed; a negative
// value means that the depth is not the reason (RFC 6581 section 9.1).
func (r *Request) Reject(ird, ord int, private []byte) error {
	return r.reject(transport.ErrRejected, ird, ord, private)
}

// Refuse is like Reject, for a request that Open has not accepted. cause is the error of Open;
// the Sealer decides what the initiator learns of it.
func (r *Request) Refuse(cause error) error { return r.reject(cause, -1, -1, nil) }

func (r *Request) reject(cause error, ird, ord int, private []byte) error {
	seal := enhanced.Refusing(r.seal, cause)
	if err := checkPrivate(len(private), seal, r.isEnhanced()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.take() {
		return errAnswered
	}
	answer := control{function: Reject, private: private}
	if r.isEnhanced() {
		answer.function = EnhancedReject
		answer.data = enhanced.Refuse(r.asked.data, enhanced.Limits{IRD: ird, ORD: ord, RTR: rtrs})
	}
	msg, err := answer.sealed(seal)
	if err != nil {
		refuse(r.s, true)
		return err
	}
	err = r.s.Send(PPIDControl, msg, true)
	r.s.Release(err == nil)
	return err
}

// checkOpened checks that the Sealer, if there is one, has accepted the request.
func (r *Request) checkOpened(o Options) error {
	switch {
	case r.shut != nil:
		return fmt.Errorf("sctp: the request is not to be believed: %w", r.shut)
	case o.Seal != nil && r.seal == nil:
		return errNotOpened
	}
	return nil
}

var errNotOpened = errors.New("sctp: Options.Seal is that of an initiator: have Request.Open open the request")

// Close ends a request that the ULP does not answer, mostly because too many requests wait,
// by a Terminate message (RFC 5043 section 6.4). If the request was answered, Close only waits
// until a refusal has been sent.
func (r *Request) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.take() {
		refuse(r.s, true)
	}
}

// take reports true once: the caller must then answer. Preconditions: mu is held.
func (r *Request) take() bool {
	first := !r.taken
	r.taken = true
	return first
}

var errAnswered = fmt.Errorf("sctp: the request was answered before: %w", net.ErrClosed)

// refuse ends a session before it is open, without involving the ULP.
func refuse(s Stream, clean bool) {
	msg := terminate()
	binary.BigEndian.PutUint16(msg, 0)
	err := s.Send(PPIDControl, msg, true)
	s.Release(clean && err == nil)
}

// LocalAddr returns the local address of the association.
func (r *Request) LocalAddr() net.Addr { return r.s.LocalAddr() }

// RemoteAddr returns the remote address of the association.
func (r *Request) RemoteAddr() net.Addr { return r.s.RemoteAddr() }
