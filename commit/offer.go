package commit

import (
	"bytes"
	"encoding/binary"
)

// OfferLen is the length of an Offer in private data.
const OfferLen = 20

// dialect names the meaning of the octets of a Commit Request: requests of the later drafts
// have the same opcodes.
var dialect = []byte("commit-00\x00")

// An Offer tells the peer, in the private data of connection set-up, that this side
// serves Commits, up to these limits (draft section 3.2.5: agreed by the applications):
//
//	 0                     10                  12                    20
//	+---------------------+-------------------+---------------------+
//	| "commit-00" and a 0 | max. regions (16) |  max. octets (64)   |
//	+---------------------+-------------------+---------------------+
type Offer struct {
	Regions uint16 // of one request; at least 1
	Octets  uint64 // of all regions of one request; 0: any number
}

// Append appends the OfferLen octets to b.
func (o Offer) Append(b []byte) []byte {
	b = append(b, dialect...)
	b = binary.BigEndian.AppendUint16(b, o.Regions)
	return binary.BigEndian.AppendUint64(b, o.Octets)
}

// CutOffer removes an Offer from the front of private data. ok reports whether there was one.
func CutOffer(private []byte) (o Offer, rest []byte, ok bool) {
	if len(private) < OfferLen || !bytes.HasPrefix(private, dialect) {
		return Offer{}, private, false
	}
	o.Regions = binary.BigEndian.Uint16(private[len(dialect):])
	o.Octets = binary.BigEndian.Uint64(private[len(dialect)+2:])
	if o.Regions == 0 {
		return Offer{}, private, false
	}
	return o, private[OfferLen:], true
}
