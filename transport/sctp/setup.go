package sctp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// Options is how one end sets up a session. The zero value is fine.
type Options struct {
	// Plain asks for a session of RFC 5043 alone, which negotiates no depths.
	Plain bool
	// FixedDepths leaves IRD and ORD to the ULPs. Nothing of RFC 6581 is wanted then, since no
	// ready-to-receive message is asked for here, and it must not be used (section 10 there): the
	// session is asked for as with Plain.
	FixedDepths bool
	// StrictDepths makes an initiator obey an Accept whose IRD and ORD are both 0:
	// it sends no Reads. Otherwise its own ORD stands.
	StrictDepths bool
	// MaxULPDU bounds the segments sent, at least 514 octets. 0: only the path does.
	MaxULPDU int
	// Seal authenticates the control messages of an initiator's set-up, from their function
	// codes on. A responder gives its own to Request.Open. nil: private data go as they are.
	Seal transport.Sealer
}

// Terms is what the two ends agreed on, as it concerns this end.
type Terms struct {
	// IRD and ORD are the depths to keep to. A plain session leaves them as they were
	// passed in.
	IRD, ORD int
	// RTR is the one message that the initiator sends first, 0 for none. It is never
	// asked for here, since either end may send first.
	RTR transport.RTR
	// PeerIRD and PeerORD are what the peer said, -1 if it did not.
	PeerIRD, PeerORD int
	// PeerPrivateData is the peer ULP's.
	PeerPrivateData []byte
	// Fault, if not nil, is why the initiator cannot go on: it sends this in a
	// Terminate message of RDMAP and ends the session (RFC 6581 section 8).
	Fault *transport.Fault
}

// A RejectError is the refusal of the peer's ULP.
type RejectError struct {
	PrivateData []byte
	IRD, ORD    int // what the responder would have needed, -1 if it did not say
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("sctp: the peer rejected the session (%d octets of private data)", len(e.PrivateData))
}

// ErrRefused is wrapped by the error of a Connect that was answered by a Terminate
// message: not the peer's ULP refused, but the peer itself. It may have too many
// requests waiting (RFC 5043 section 6.4), or know nothing of RFC 6581.
var ErrRefused = errors.New("sctp: the peer refused the session")

// CheckRequest tells whether a session may be asked for with so many octets of private
// data. Connect checks the same; a caller may want to know before there is an association.
func (o Options) CheckRequest(private int) error {
	return checkPrivate(private, enhanced.Sealing(o.Seal), o.isEnhanced())
}

// isEnhanced tells whether a session of RFC 6581 is asked for.
func (o Options) isEnhanced() bool { return !o.Plain && !o.FixedDepths }

// MaxPrivate is how many octets a request with these options has room for behind the enhanced
// data, what Seal adds included.
func (o Options) MaxPrivate() int { return maxPrivate(o.isEnhanced()) }

func maxPrivate(isEnhanced bool) int {
	if isEnhanced {
		return MaxPrivateData - enhanced.Size
	}
	return MaxPrivateData
}

// checkPrivate tells whether so much private data fits a control message, with what the seal
// adds to them.
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
