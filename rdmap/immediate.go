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
// segments under way have each a place of their own. Few streams ever have so many: the
// places are made block by block, when they are first used.
type immediates []*immediateBlock

// immediateBlock is a power of two, so that the numbers may wrap.
type immediateBlock [64]immediatePlace

type immediatePlace struct {
	octets [immediateLen]byte
	span   [1]stag.Span // of octets
}

// newImmediates returns the places for a window of so many segments ahead.
func newImmediates(window int) immediates {
	n := 1 // of blocks: a power of two, for the same reason
	for n*len(immediateBlock{}) <= window {
		n *= 2
	}
	return make(immediates, n)
}

func (q immediates) at(msn ddp.MSN) *immediatePlace {
	const size = uint32(len(immediateBlock{}))
	b := &q[uint32(msn)/size&uint32(len(q)-1)]
	if *b == nil {
		*b = new(immediateBlock)
		for i := range *b {
			p := &(*b)[i]
			p.span[0] = stag.Span{Mem: p.octets[:], Len: immediateLen}
		}
	}
	return &(*b)[uint32(msn)%size]
}

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
