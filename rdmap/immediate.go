package rdmap

import (
	"math/bits"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// immediateLen is the length of Immediate Data, always (RFC 7306 section 6.3).
const immediateLen = 8

// immediates is where Immediate Data waits for its delivery: a ring with a place for each
// message from the one that is due to the last that has come. Of those that come in their
// turn it needs one. Its length is a power of two, so that the numbers may wrap.
type immediates []immediatePlace

type immediatePlace struct {
	octets [immediateLen]byte
	span   [1]stag.Span // of octets
}

// reach makes room for the message with this number, the k-th behind the one that is due,
// and returns its place. k is bounded by the receives that are posted.
func (q *immediates) reach(msn ddp.MSN, k int) *immediatePlace {
	if k >= len(*q) {
		q.grow(uint32(msn)-uint32(k), 1<<bits.Len(uint(k)))
	}
	return q.at(msn)
}

// grow makes n places of those there are, which begin with the message that is due.
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

// checkImmediate wants a message that is one segment of eight octets.
func checkImmediate(h ddp.UntaggedHeader, n int) error {
	if err := checkSingle(h, n, immediateLen); err != nil {
		return err
	}
	if n != immediateLen {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "%v of %d octets", opcodeOf(h.RsvdULP), n)
	}
	return nil
}
