package mpa

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

const allRTR = transport.RTRSend | transport.RTRWrite | transport.RTRRead

// privateDataDefault is the most private data of the ULP without
// LargePrivateData: Linux siw and cxgb4 take 256 octets, enhanced data included.
const privateDataDefault = 248

// Options is how one end sets up a connection. The zero value is revision 2 with
// CRCs and without Markers.
type Options struct {
	// Revision to ask for, or the highest to accept: 1 (RFC 5044: neither depths
	// nor RTR are negotiated) or 2 (RFC 6581). 0 means 2.
	Revision int
	// NoCRC says that we need no CRC. There is one anyway if the peer wants it. Only
	// a stream that protects its octets at least as well, such as TLS, should do
	// without (RFC 5044 section 4.4).
	NoCRC bool
	// Markers asks the peer to send Markers.
	Markers bool
	// EarlyResponderSend lets a responder send before the initiator's first FPDU has
	// come, which RFC 5044 section 7.1.2 rule 4 forbids.
	EarlyResponderSend bool
	// LargePrivateData allows all the private data that a frame has room for: 508
	// octets with enhanced data, 512 without. The default is 248, because some peers
	// take no more.
	LargePrivateData bool
	// MaxULPDU bounds the ULPDUs sent, at least 128 octets. 0: only the path does.
	MaxULPDU int
	// RTR names the kinds that an initiator offers and that a responder takes. 0
	// means Write and Read for an initiator, which offers Read only with an ORD, and
	// all kinds for a responder.
	RTR transport.RTR
	// StrictRTR has an initiator whose RTR is 0 offer every kind, Send included (RFC
	// 6581 section 9.2).
	StrictRTR bool
	// StrictDepths makes an initiator obey a Reply whose IRD and ORD are both 0 (RFC
	// 6581 section 9.1): it sends no Reads. Otherwise its own ORD stands, because Linux siw
	// sends such a Reply when its ULP named no depths.
	StrictDepths bool
	// ClientServer has an initiator offer no RTR (A=0): the first message of its ULP
	// is what opens the connection.
	ClientServer bool
	// FixedDepths makes an initiator leave IRD and ORD to the ULPs: it sends 0x3FFF, and
	// both ends keep to the depths that they were given (RFC 6581 section 9.1).
	FixedDepths bool
	// Seal authenticates the frames of an initiator's set-up. A responder gives its own to
	// Request.Open. nil: private data go as they are.
	Seal transport.Sealer
}

var errRevision = errors.New("mpa: want revision 1 or 2")

// revision is the one to ask for, or the highest to accept.
func (o Options) revision() (uint8, error) {
	switch o.Revision {
	case 0, Revision2:
		return Revision2, nil
	case Revision1:
		return Revision1, nil
	}
	return 0, fmt.Errorf("%w, not %d", errRevision, o.Revision)
}

// Check returns an error that begins with the name of the first field with a value that is not
// allowed.
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

// CheckRequest tells whether a Request may be sent with these options and so many octets
// of private data. Connect checks the same; a caller may want to know before there is a
// connection.
func (o Options) CheckRequest(private int) error {
	_, err := o.request(private)
	return err
}

// request returns the revision of a Request with so many octets of private data.
func (o Options) request(private int) (revision uint8, err error) {
	if revision, err = o.asked(); err != nil {
		return 0, err
	}
	return revision, o.checkPrivate(private, enhanced.Sealing(o.Seal), revision >= Revision2)
}

// MaxPrivate is how many octets a Request with these options has room for behind the enhanced
// data, what Seal adds included.
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

// checkPrivate tells whether so much private data may go into a frame, with what the seal
// adds to them.
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

// asked is the revision that an initiator asks for: nothing of RFC 6581 is used
// where nothing of it is wanted (section 10 there).
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

// Terms is what the two ends agreed on, as it concerns this end.
type Terms struct {
	Initiator      bool // this end sent the Request
	Revision       int
	CRC            bool // both directions
	SendMarkers    bool // the peer wants them
	ReceiveMarkers bool // we want them

	// IRD and ORD are the depths to keep to. Without negotiation (revision 1, or an
	// unenhanced Request) they are the ones that were passed in.
	IRD, ORD int
	// RTR is the one kind that the initiator sends as its first message, 0 for none.
	// A responder whose peer offered none that it takes has 0 as well: what comes
	// then is a Terminate message.
	RTR transport.RTR
	// PeerIRD and PeerORD are what the peer said, -1 if it did not: it leaves the
	// depth to the ULP, or nothing was negotiated.
	PeerIRD, PeerORD int
	// PeerPrivateData is the peer ULP's, without the enhanced data.
	PeerPrivateData []byte

	// Fault, if not nil, is why the initiator cannot go on: it sends this in a
	// Terminate message in place of the RTR and ends the connection. 2/0/06 or
	// 2/0/07 (RFC 6581 section 8).
	Fault *transport.Fault
}

// A RejectError is a responder's refusal.
type RejectError struct {
	PrivateData []byte // the responder ULP's reason, without the enhanced data
	IRD, ORD    int    // what the responder said, -1 if it did not
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("mpa: the peer rejected the connection (%d octets of private data)", len(e.PrivateData))
}

// ErrNoReply is wrapped by the error of a Connect whose peer closed the
// connection without one octet of a Reply to an enhanced Request, as a peer does that
// does not know the revision. A new connection with revision 1 may then do better (RFC 6581 section
// 10).
var ErrNoReply = errors.New("mpa: connection closed without a Reply")
