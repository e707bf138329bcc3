package sctp

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// Connect requests a session from the peer on s and waits for the answer (RFC 5043 section
// 6). ird and ord are the depths that this end supports and wants; a negative value counts as
// 0. ctx bounds the exchange.
//
// With o.Seal nothing in the answer, not even a refusal, is trusted before Seal.Open has
// accepted it: Connect returns an error of Open, and no *RejectError. A Terminate, which
// has no private data, is accepted as it is.
//
// The returned Conn owns s. After an error, which may be a [*RejectError] or match
// [ErrRefused], s has been released.
func Connect(ctx context.Context, s Stream, o Options, ird, ord int, private []byte) (*Conn, *Terms, error) {
	ours := enhanced.Limits{IRD: ird, ORD: ord, Strict: o.StrictDepths}
	request := control{function: Initiate, private: private}
	if o.isEnhanced() {
		request.function, request.data = EnhancedInitiate, enhanced.Request(ours)
	}
	seal := enhanced.Sealing(o.Seal)
	var msg []byte
	err := checkPrivate(len(private), seal, o.isEnhanced())
	if err == nil {
		msg, err = request.sealed(seal)
	}
	if err != nil {
		s.Release(true) // nothing was sent
		return nil, nil, err
	}
	if err := s.Send(PPIDControl, msg, true); err != nil {
		s.Release(false)
		return nil, nil, err
	}
	in, answer, err := await(ctx, s, true)
	c := newConn(s, in, in.begun, o.MaxULPDU)
	if err == nil {
		err = judge(request.function, answer, o.Seal)
	}
	if err != nil {
		return nil, nil, c.refuse(err, answer)
	}
	t := &Terms{IRD: max(ird, 0), ORD: max(ord, 0), PeerIRD: -1, PeerORD: -1, PeerPrivateData: bytes.Clone(answer.private)}
	if o.isEnhanced() {
		t.PeerIRD, t.PeerORD = enhanced.Told(answer.data.IRD), enhanced.Told(answer.data.ORD)
		var agreed enhanced.Agreed
		agreed, t.Fault = enhanced.Conclude(ours, answer.data)
		t.IRD, t.ORD, t.RTR = agreed.IRD, agreed.ORD, agreed.RTR
	}
	return c, t, nil
}

// judge returns the error that the answer to a request means, or nil if the request was accepted.
func judge(request Function, answer *control, seal transport.Sealer) error {
	if seal != nil && answer.function != Terminate {
		if err := answer.open(seal); err != nil {
			return fmt.Errorf("sctp: opening the answer: %w", err)
		}
	}
	switch f := answer.function; {
	case f == Terminate:
		return ErrRefused
	case f == Reject || f == EnhancedReject && (answer.bare || !request.isEnhanced()):
		return &RejectError{PrivateData: bytes.Clone(answer.private), IRD: -1, ORD: -1}
	case f == EnhancedReject:
		return &RejectError{PrivateData: bytes.Clone(answer.private), IRD: enhanced.Told(answer.data.IRD), ORD: enhanced.Told(answer.data.ORD)}
	case f == Accept && request == Initiate, f == EnhancedAccept && request == EnhancedInitiate:
		return nil
	default:
		return violation("%v as the answer to %v", f, request)
	}
}

// refuse ends a session that was never open. A Reject or a Terminate in answer to our
// Initiate, even if nothing else in it is trusted, has already ended it (RFC 5043 sections
// 6.3 and 6.4); otherwise a Terminate ends it. answer is nil if none has arrived.
func (c *Conn) refuse(err error, answer *control) error {
	if answer != nil && answer.function.refuses() {
		c.terminated = true
		c.s.Release(true)
		return err
	}
	c.Abort(err)
	return err
}

// await waits for the peer's first message. It holds back messages that overtake the first one, if mayOvertake is set.
func await(ctx context.Context, s Stream, mayOvertake bool) (session, *control, error) {
	defer context.AfterFunc(ctx, s.Wake)()
	buf := readBuffers.Get()
	defer readBuffers.Put(buf)
	var in session
	for {
		if err := ctx.Err(); err != nil {
			return in, nil, fmt.Errorf("sctp: no answer: %w", context.Cause(ctx))
		}
		n, ppid, err := s.Receive(buf[:])
		if errors.Is(err, transport.ErrWoken) {
			continue
		}
		if err != nil {
			return in, nil, err
		}
		seq, segment, answer, err := in.receive(ppid, buf[:n])
		switch {
		case err != nil:
			return in, nil, err
		case answer != nil:
			answer.own()
			return in, answer, nil
		case !mayOvertake:
			return in, nil, violation("something that overtakes the first message of its session")
		case segment != nil:
			if err := in.keep(seq, segment); err != nil {
				return in, nil, err
			}
		}
	}
}
