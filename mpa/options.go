package mpa

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

const allRTR = transport.RTRSend | transport.RTRWrite | transport.RTRRead

// privateDataDefault is the most private data of the ULP without
// LargePrivateData: Linux siw and cxgb4 accept 256 octets, including enhanced data.
const privateDataDefault = 248

// Options says how one end sets up a connection. The zero value is revision 2 with
// CRCs and without Markers.
type Options struct {
	// Revision is the revision to request, or the highest to accept: 1 (RFC 5044: neither
	// depths nor RTR are negotiated) or 2 (RFC 6581). 0 means 2.
	Revision int
	// NoCRC says that this end needs no CRC. CRCs are still used if the peer wants them.
	// Only a stream that protects its octets at least as well, such as TLS, should waive
	// them (RFC 5044 section 4.4).
	NoCRC bool
	// Markers asks the peer to send Markers.
	Markers bool
	// EarlyResponderSend lets a responder send before the initiator's first FPDU has
	// arrived, which RFC 5044 section 7.1.2 rule 4 forbids.
	EarlyResponderSend bool
	// LargePrivateData allows all the private data that fit in a frame: 508 octets with
	// enhanced data, 512 without. The default is 248, because some peers accept no
	// more.
	LargePrivateData bool
	// MaxULPDU bounds the ULPDUs sent, at least 128 octets. 0: only the path does.
	MaxULPDU int
	// RTR is the set of kinds that an initiator offers and that a responder accepts. 0
	// means Write and Read for an initiator, which offers Read only with an ORD, and
	// all kinds for a responder.
	RTR transport.RTR
	// StrictRTR makes an initiator whose RTR is 0 offer every kind, Send included (RFC
	// 6581 section 9.2).
	StrictRTR bool
	// StrictDepths makes an initiator obey a Reply whose IRD and ORD are both 0 (RFC
	// 6581 section 9.1): it sends no Reads. Otherwise it keeps its own ORD, because Linux siw
	// sends such a Reply if its ULP has specified no depths.
	StrictDepths bool
	// ClientServer makes an initiator offer no RTR (A=0): the first message of its ULP
	// opens the connection.
	ClientServer bool
	// FixedDepths makes an initiator leave IRD and ORD to the ULPs: it sends 0x3FFF, and
	// both ends use the depths that they were given (RFC 6581 section 9.1).
	FixedDepths bool
	// Seal authenticates the frames of an initiator's set-up. A responder passes its own to
	// Request.Open. nil: private data is not sealed.
	Seal transport.Sealer
}

var errRevision = errors.New("mpa: want revision 1 or 2")

// revision returns the revision to request, or the highest to accept.
func (o Options) revision() (uint8, error) {
	switch o.Revision {
	case 0, Revision2:
		return Revision2, nil
	case Revision1:
		return Revision1, nil
	}
	return 0, fmt.Errorf("%w, not %d", errRevision, o.Revision)
}

// Check returns an error if a field has a value that is not allowed. The error begins with the name of
// the first such field.
func (o Options) Check() error {
	switch _, err := o.revision(); {
	case err != nil:
		return fmt.Errorf("Revision is %d, want 1 or 2", o.Revision)
	case o.MaxULPDU < 0:
		return fmt.Errorf("MaxULPDU is negative: %d", o.MaxULPDU)
	case o.RTR&^allRTR != 0:
		return fmt.Errorf("RTR has unknown kinds: %#x", uint8(o.RTR))
	}
	return nil
}

func (o Options) limit() MULPDU {
	if o.MaxULPDU <= 0 {
		return MaxMULPDU
	}
	return min(max(MULPDU(o.MaxULPDU), MinMULPDU), MaxMULPDU)
}

// CheckRequest checks that a Request may be sent with these options and this number of octets
// of private data. Connect checks the same; a caller may want to know before there is a
// connection.
func (o Options) CheckRequest(private int) error {
	_, err := o.request(private)
	return err
}

// request returns the revision of a Request with this number of octets of private data.
func (o Options) request(private int) (revision uint8, err error) {
	if revision, err = o.asked(); err != nil {
		return 0, err
	}
	return revision, o.checkPrivate(private, enhanced.Sealing(o.Seal), revision >= Revision2)
}

// MaxPrivate returns how many octets fit in a Request with these options after the enhanced
// data, including what Seal adds.
func (o Options) MaxPrivate() int {
	revision, err := o.asked()
	return o.maxPrivate(err == nil && revision >= Revision2)
}

func (o Options) maxPrivate(isEnhanced bool) int {
	switch {
	case !o.LargePrivateData:
		return privateDataDefault
	case isEnhanced:
		return MaxPrivateDataSize - enhanced.Size
	}
	return MaxPrivateDataSize
}

// checkPrivate checks that n octets of private data fit in a frame, together with what the
// seal adds to them.
func (o Options) checkPrivate(n int, x enhanced.Seal, isEnhanced bool) error {
	limit := o.maxPrivate(isEnhanced)
	switch {
	case n+x.Overhead <= limit:
		return nil
	case x.Overhead > 0:
		return fmt.Errorf("mpa: %d octets of private data, at most %d are left of %d: authentication takes %d",
			n, max(limit-x.Overhead, 0), limit, x.Overhead)
	case o.LargePrivateData:
		return fmt.Errorf("mpa: %d octets of private data, at most %d are allowed", n, limit)
	}
	return fmt.Errorf("mpa: %d octets of private data, at most %d are allowed without LargePrivateData", n, limit)
}

// asked returns the revision that an initiator requests: RFC 6581 is not used if none
// of its features is wanted (section 10 there).
func (o Options) asked() (uint8, error) {
	if o.ClientServer && o.FixedDepths {
		return Revision1, nil
	}
	return o.revision()
}

func (o Options) offered() transport.RTR {
	switch {
	case o.ClientServer:
		return 0
	case o.RTR != 0:
		return o.RTR
	case o.StrictRTR:
		return allRTR
	}
	return transport.RTRWrite | transport.RTRRead
}

func (o Options) taken() transport.RTR {
	if o.RTR == 0 {
		return allRTR
	}
	return o.RTR
}

// Terms is what the two ends have agreed on, as seen from this end.
type Terms struct {
	Initiator      bool // this end sent the Request
	Revision       int
	CRC            bool // both directions
	SendMarkers    bool // the peer wants them
	ReceiveMarkers bool // we want them

	// IRD and ORD are the depths that apply. Without negotiation (revision 1, or an
	// unenhanced Request) they are those that were passed in.
	IRD, ORD int
	// RTR is the kind that the initiator sends as its first message, 0 for none. It is also
	// 0 at a responder whose peer offered no kind that it accepts: a Terminate message
	// follows.
	RTR transport.RTR
	// PeerIRD and PeerORD are what the peer sent. They are -1 if the peer leaves the
	// depth to the ULP, or if nothing was negotiated.
	PeerIRD, PeerORD int
	// PeerPrivateData is the private data of the peer's ULP, without the enhanced data.
	PeerPrivateData []byte

	// Fault, if not nil, is why the initiator cannot continue: it sends this in a
	// Terminate message instead of the RTR and ends the connection. 2/0/06 or
	// 2/0/07 (RFC 6581 section 8).
	Fault *transport.Fault
}

// A RejectError is a responder's refusal.
type RejectError struct {
	PrivateData []byte // the reason of the responder's ULP, without the enhanced data
	IRD, ORD    int    // what the responder sent, -1 if it sent none
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("mpa: the peer rejected the connection (%d octets of private data)", len(e.PrivateData))
}

// ErrNoReply is wrapped by the error of a Connect whose peer closed the connection without
// sending one octet of a Reply to an enhanced Request, as a peer does that does not support
// the revision. A new connection with revision 1 may then succeed (RFC 6581 section 10).
var ErrNoReply = errors.New("mpa: connection closed without a Reply")
