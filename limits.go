package iwarp

import (
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/transport"
)

// Limits bounds the resources of an RNIC, so that neither a peer nor a part of the program can
// take more than a fair share (RFC 5042 section 7.2). A zero field means its default, which
// the comments below give; a depth is at most 2^30-1, MaxIRD and MaxORD 16,382, and MaxHalfOpen
// 2^20. A request that exceeds a limit fails with an error that matches ErrLimit.
//
// The limits apply to the RNIC as a whole: all objects that were created from it count. Parts
// of a program that must not take each other's share should each use an RNIC of their own.
type Limits struct {
	MaxQP         int // queue pairs: 65,536
	MaxMR         int // memory regions and windows: 1,048,576
	MaxPD         int // protection domains: 65,536
	MaxCQ         int // completion queues: 65,536
	MaxSRQ        int // shared receive queues: 65,536
	MaxQueueDepth int // work requests in a send, receive or shared receive queue: 65,536
	MaxCQDepth    int // entries of a completion queue: 4,194,304
	MaxSGE        int // SGEs of one work request: 16
	MaxInline     int // octets of inline payload: 1,024
	MaxIRD        int // RDMA Reads, atomic operations and Commits that the peer of a QP may have outstanding: 1,024
	MaxORD        int // RDMA Reads, atomic operations and Commits that this side of a QP may have outstanding: 1,024
	MaxHalfOpen   int // connections of a listener that are being set up: 4,096, or half the limit of open files if that is less
}

var defaultLimits = Limits{
	MaxQP: 1 << 16, MaxMR: 1 << 20, MaxPD: 1 << 16, MaxCQ: 1 << 16, MaxSRQ: 1 << 16,
	MaxQueueDepth: 1 << 16, MaxCQDepth: 1 << 22,
	MaxSGE: 16, MaxInline: 1024, MaxIRD: 1024, MaxORD: 1024, MaxHalfOpen: 4096,
}

// maxReads is the largest IRD or ORD that fits in the 14 bits of RFC 6581, where 0x3FFF means "not specified".
// The sum of two maxDepth fits in an int of 32 bits. A listener allocates a word for each of MaxHalfOpen.
const maxReads, maxDepth, maxHalfOpen = 0x3ffe, 1<<30 - 1, 1 << 20

func (l Limits) withDefaults() (Limits, error) {
	d := defaultLimits
	d.MaxHalfOpen = min(d.MaxHalfOpen, max(1, transport.MaxFiles()/2))
	if err := quota.Defaults("Limits", &l, &d); err != nil {
		return Limits{}, err
	}
	return l, quota.Within(ErrLimit, []quota.Range{
		{Name: "Limits.MaxIRD", Value: &l.MaxIRD, Most: maxReads},
		{Name: "Limits.MaxORD", Value: &l.MaxORD, Most: maxReads},
		{Name: "Limits.MaxQueueDepth", Value: &l.MaxQueueDepth, Most: maxDepth},
		{Name: "Limits.MaxCQDepth", Value: &l.MaxCQDepth, Most: maxDepth},
		{Name: "Limits.MaxHalfOpen", Value: &l.MaxHalfOpen, Most: maxHalfOpen},
	})
}

// usage counts the resources that Limits bounds.
type usage struct{ qp, mr, pd, cq, srq quota.Count }
