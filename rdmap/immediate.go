package rdmap

import (
	"math/bits"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// immediateLen is the fixed length of Immediate Data (RFC 7306 section 6.3).
const immediateLen = 8

// immediates holds Immediate Data until its delivery. It is a ring with one place for each
// message from the next to be delivered to the last that has arrived; one place suffices for
// messages that arrive in order. Its length is a power of two, so that the numbers may wrap.
type immediates []immediatePlace

type immediatePlace struct {
	octets [immediateLen]byte
	span   [1]stag.Span // names octets
}

// reach returns the place of the message with this number, and grows the ring if necessary.
// The message is the k-th after the next to be delivered; k is less than the number of posted
// receives.
func (q *immediates) reach(msn ddp.MSN, k int) *immediatePlace {
	if k >= len(*q) {
		q.grow(uint32(msn)-uint32(k), 1<<bits.Len(uint(k)))
	}
	return q.at(msn)
}

// grow makes a ring of n places. due is the number of the next message to be delivered.
func (q *immediates) grow(due uint32, n int) {
	old := *q
	*q = make(immediates, n)
	for i := range *q {
		p := &(*q)[i]
		p.span[0] = stag.Span{Mem: p.octets[:], Len: immediateLen}
	}
	for i := range uint32(len(old)) {
		q.at(ddp.MSN(due + i)).octets = old.at(ddp.MSN(due + i)).octets
	}
}

func (q immediates) at(msn ddp.MSN) *immediatePlace { return &q[uint32(msn)&uint32(len(q)-1)] }

// checkImmediate checks that the message is a single segment of eight octets.
func checkImmediate(h ddp.UntaggedHeader, n int) error {
	if err := checkSingle(h, n, immediateLen); err != nil {
		return err
	}
	if n != immediateLen {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "%v of %d octets", opcodeOf(h.RsvdULP), n)
	}
	return nil
}
