package ddp

import "github.com/goiwarp/iwarp/transport"

// MaxSizes are the sizes of the longest messages, in octets of payload, that fit in one segment
// (RFC 4296 section 2.1.2). Longer messages, up to 2^32-1 octets, need several segments.
type MaxSizes struct{ Untagged, Tagged int }

// MaxSizesOf returns the MaxSizes of a lower layer. They are a snapshot: its MaxULPDU may
// change at any time.
func MaxSizesOf(llp transport.LLP) MaxSizes {
	n := llp.MaxULPDU()
	return MaxSizes{Untagged: max(n-UntaggedLen, 0), Tagged: max(n-TaggedLen, 0)}
}
