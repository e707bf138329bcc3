package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// immediateLen is the length of Immediate Data, always (RFC 7306 section 6.3).
const immediateLen = 8

// immediates is where Immediate Data waits for its delivery. Messages on QN 0 have
// consecutive numbers and at least one segment each, so that as many as there may be
// segments under way have each a place of their own.
type immediates []immediatePlace

type immediatePlace struct {
	octets [immediateLen]byte
	span   [1]stag.Span // of octets
}

// newImmediates returns the places for a window of so many segments ahead.
func newImmediates(window int) immediates {
	n := 1 // a power of two, so that the numbers may wrap
	for n <= window {
		n *= 2
	}
	q := make(immediates, n)
	for i := range q {
		q[i].span[0] = stag.Span{Mem: q[i].octets[:], Len: immediateLen}
	}
	return q
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
