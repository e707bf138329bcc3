package iwarp

import (
	"fmt"
	"reflect"

	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/transport"
)

// Limits caps the resources of an RNIC, so that neither a peer nor a user of the
// process can take more than a fair share (RFC 5042 section 7.2). A zero field
// means its default. What would go beyond is refused with an error that matches
// ErrLimit.
//
// They are of the RNIC as a whole: its objects are made by it, or by what it has made,
// and all of them count. Parts of a program that must not take each other's share have
// an RNIC each, with the Limits that are their share.
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
	MaxIRD        int // RDMA Reads and atomic operations of the peer, of a QP: 1,024
	MaxORD        int // RDMA Reads and atomic operations of this side, of a QP: 1,024
	MaxHalfOpen   int // connections of a listener that are being set up: 4,096, or half as many as the process may have files
}

var defaultLimits = Limits{
	MaxQP: 1 << 16, MaxMR: 1 << 20, MaxPD: 1 << 16, MaxCQ: 1 << 16, MaxSRQ: 1 << 16,
	MaxQueueDepth: 1 << 16, MaxCQDepth: 1 << 22,
	MaxSGE: 16, MaxInline: 1024,
	MaxIRD: 1024, MaxORD: 1024,
	MaxHalfOpen: 4096,
}

// maxReads is the largest IRD or ORD that the 14 bits of RFC 6581 can say: 0x3FFF
// means "not told".
const maxReads = 0x3ffe

func (l Limits) withDefaults() (Limits, error) {
	v, d := reflect.ValueOf(&l).Elem(), reflect.ValueOf(defaultLimits)
	for i := range v.NumField() {
		switch n := v.Field(i).Int(); {
		case n < 0:
			return Limits{}, fmt.Errorf("iwarp: Limits.%s is negative: %d", v.Type().Field(i).Name, n)
		case n == 0:
			v.Field(i).Set(d.Field(i))
			if v.Type().Field(i).Name == "MaxHalfOpen" {
				l.MaxHalfOpen = min(l.MaxHalfOpen, max(1, transport.MaxFiles()/2))
			}
		}
	}
	if l.MaxIRD > maxReads || l.MaxORD > maxReads {
		return Limits{}, fmt.Errorf("iwarp: Limits.MaxIRD or MaxORD is above %d", maxReads)
	}
	return l, nil
}

// usage counts what Limits caps.
type usage struct{ qp, mr, pd, cq, srq quota.Count }

// checkDepth holds the depth of a queue against its limit.
func checkDepth(queue string, depth, most int) error {
	switch {
	case depth < 1:
		return fmt.Errorf("iwarp: %s of depth %d, less than 1", queue, depth)
	case depth > most:
		return fmt.Errorf("%w: %s of depth %d, at most %d", ErrLimit, queue, depth, most)
	}
	return nil
}
