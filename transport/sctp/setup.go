package sctp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// Options says how one end sets up a session. The zero value is valid.
type Options struct {
	// Plain requests a session of RFC 5043 only, which negotiates no depths.
	Plain bool
	// FixedDepths leaves IRD and ORD to the ULPs. RFC 6581 is then not needed, since no
	// ready-to-receive message is requested here, and must not be used (section 10 there): the
	// session is requested as with Plain.
	FixedDepths bool
	// StrictDepths makes an initiator obey an Accept whose IRD and ORD are both 0:
	// it sends no Reads. Otherwise it keeps its own ORD.
	StrictDepths bool
	// MaxULPDU bounds the segments sent, at least 514 octets. 0: only the path does.
	MaxULPDU int
	// Seal authenticates the control messages of an initiator's set-up, from their function
	// codes on. A responder passes its own to Request.Open. nil: private data is not sealed.
	Seal transport.Sealer
}

// Terms is what the two ends have agreed on, as seen from this end.
type Terms struct {
	// IRD and ORD are the depths that apply. A plain session leaves them as they were
	// passed in.
	IRD, ORD int
	// RTR is the message that the initiator sends first, 0 for none. It is never
	// requested here, since either end may send first.
	RTR transport.RTR
	// PeerIRD and PeerORD are what the peer sent, -1 if it sent none.
	PeerIRD, PeerORD int
	// PeerPrivateData is the private data of the peer's ULP.
	PeerPrivateData []byte
	// Fault, if not nil, is why the initiator cannot continue: it sends this in a
	// Terminate message of RDMAP and ends the session (RFC 6581 section 8).
	Fault *transport.Fault
}

// A RejectError is a refusal by the peer's ULP.
type RejectError struct {
	PrivateData []byte
	IRD, ORD    int // what the responder would have needed, -1 if it did not say
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("sctp: the peer rejected the session (%d octets of private data)", len(e.PrivateData))
}

// ErrRefused is wrapped by the error of a Connect that was answered by a Terminate
// message: the peer itself refused, and not its ULP. It may have too many waiting
// requests (RFC 5043 section 6.4), or not support RFC 6581.
var ErrRefused = errors.New("sctp: the peer refused the session")

// CheckRequest checks that a session may be requested with this number of octets of private
// data. Connect checks the same; a caller may want to know before there is an association.
func (o Options) CheckRequest(private int) error {
	return checkPrivate(private, enhanced.Sealing(o.Seal), o.isEnhanced())
}

// isEnhanced reports whether a session of RFC 6581 is requested.
func (o Options) isEnhanced() bool { return !o.Plain && !o.FixedDepths }

// MaxPrivate returns how many octets fit in a request with these options after the enhanced
// data, including what Seal adds.
func (o Options) MaxPrivate() int { return maxPrivate(o.isEnhanced()) }

func maxPrivate(isEnhanced bool) int {
	if isEnhanced {
		return MaxPrivateData - enhanced.Size
	}
	return MaxPrivateData
}

// checkPrivate checks that n octets of private data fit in a control message, together with what
// the seal adds to them.
func checkPrivate(n int, x enhanced.Seal, isEnhanced bool) error {
	limit := maxPrivate(isEnhanced)
	switch {
	case n+x.Overhead <= limit:
		return nil
	case x.Overhead > 0:
		return fmt.Errorf("sctp: %d octets of private data, at most %d are left of %d: authentication takes %d",
			n, max(limit-x.Overhead, 0), limit, x.Overhead)
	}
	return fmt.Errorf("sctp: %d octets of private data, at most %d are allowed", n, limit)
}
