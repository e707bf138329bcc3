package iwarp

import (
	"math"

	"github.com/goiwarp/iwarp/ddp"
)

// MaxSizes are the largest sizes of a QP's messages, in octets of payload.
type MaxSizes struct {
	// Message is the largest size of a Send, RDMA Write or RDMA Read: 2^32-1 (RFC 5041 section
	// 5.2). A larger one is refused when it is posted.
	Message uint32
	// Inline is the largest size of SendWR.Inline: Limits.MaxInline.
	Inline int
	// SendSegment is the largest Send that fits in one segment, and TaggedSegment the largest
	// RDMA Write or RDMA Read Response; larger ones are split into several segments. Both
	// depend on the path and its MTU, and are 0 while the QP is not connected.
	SendSegment, TaggedSegment int
}

// MaxSizes returns the current sizes (RFC 4296 sections 2.1.2 and 2.2.1).
func (qp *QP) MaxSizes() MaxSizes {
	m := MaxSizes{Message: math.MaxUint32, Inline: qp.rnic.limits.MaxInline}
	if qp.conn.Load() != nil {
		s := ddp.MaxSizesOf(qp.llp)
		m.SendSegment, m.TaggedSegment = s.Untagged, s.Tagged
	}
	return m
}
