package qpconn

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// ReceiveStatus returns the status of the receive whose message was in error.
func ReceiveStatus(cause error) rdmap.Status {
	var seg *ddp.SegmentError
	if !errors.As(cause, &seg) || ddp.IsTagged(seg.Header) {
		return rdmap.StatusFlushed
	}
	if h, err := ddp.ParseUntagged(seg.Header); err != nil || h.QN != rdmap.QNSend {
		return rdmap.StatusFlushed
	}
	switch {
	case seg.Code() == transport.DDPTooLong:
		return rdmap.StatusLocalLength
	case errors.Is(cause, stag.ErrInvalid):
		return rdmap.StatusLocalAccess
	case seg.Code() == transport.DDPLocalCatastrophic && !errors.Is(cause, ddp.ErrAhead):
		return rdmap.StatusLocalOp
	}
	return rdmap.StatusFlushed
}

// NothingButTerminate reports whether the peer has sent nothing except, perhaps, a Terminate.
func NothingButTerminate(s rdmap.Stats) bool {
	s.In[rdmap.OpTerminate] = rdmap.Traffic{}
	return s == rdmap.Stats{Out: s.Out}
}

// reorderWindow is how many segments may arrive ahead of a missing one: as many as a peer may
// have in flight on an SCTP session (RFC 5043 section 10). The state that this side keeps for
// them grows with their distance from the missing segment, to about 2 MiB.
const reorderWindow = 1<<15 - 1

// Window returns how many segments may arrive out of order: 0 for an LLP that keeps the order.
func Window(llp transport.LLP) int {
	if llp.Caps().OutOfOrder {
		return reorderWindow
	}
	return 0
}
