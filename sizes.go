package iwarp

import (
	"math"

	"github.com/goiwarp/iwarp/ddp"
)

// MaxSizes tells how long the messages of a QP may be, in octets of payload.
type MaxSizes struct {
	// Message is the longest Send, RDMA Write or RDMA Read: 2^32-1 (RFC 5041 section
	// 5.2). One that is longer is refused when it is posted.
	Message uint32
	// Inline is the longest payload of SendWR.Inline: Limits.MaxInline.
	Inline int
	// SendSegment is the longest Send, and TaggedSegment the longest RDMA Write or answer
	// to an RDMA Read, that goes out in one segment; others are cut into several. They
	// follow the path and its MTU, and are 0 while the QP is not connected.
	SendSegment, TaggedSegment int
}

// MaxSizes returns the sizes of the moment (RFC 4296 sections 2.1.2 and 2.2.1).
func (qp *QP) MaxSizes() MaxSizes {
	m := MaxSizes{Message: math.MaxUint32, Inline: qp.rnic.limits.MaxInline}
	if qp.conn.Load() != nil {
		s := ddp.MaxSizesOf(qp.llp)
		m.SendSegment, m.TaggedSegment = s.Untagged, s.Tagged
	}
	return m
}
