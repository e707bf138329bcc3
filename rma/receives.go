package rma

import (
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

const (
	receiveSize = 256  // octets of the memory for one message
	receiveStep = 1024 // receives whose memory is allocated at once: the QP may not hold as many as the peer announces
)

// receives are the receives for messages of the peer. There is one for each message that may be in flight,
// so that none ever waits.
type receives struct {
	pd   *iwarp.PD
	qp   *iwarp.QP
	mrs  []*iwarp.MR
	mems [][]byte
	wrs  []iwarp.RecvWR
}

// grow posts n more receives.
func (r *receives) grow(n int) error {
	for ; n > 0; n -= receiveStep {
		if err := r.add(min(n, receiveStep)); err != nil {
			return err
		}
	}
	return nil
}

func (r *receives) add(n int) error {
	slab := make([]byte, n*receiveSize)
	mr, err := r.pd.RegisterMR(slab, stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	r.mrs = append(r.mrs, mr)
	first := len(r.wrs)
	for i := range n {
		at := i * receiveSize
		r.mems = append(r.mems, slab[at:at+receiveSize:at+receiveSize])
		r.wrs = append(r.wrs, iwarp.RecvWR{ID: uint64(first + i), Local: []iwarp.SGE{mr.Slice(at, receiveSize)}})
	}
	if err := r.qp.PostRecv(r.wrs[first:]...); err != nil {
		return fmt.Errorf("rma: %d receives or more, see Depths: %w", len(r.wrs), err)
	}
	return nil
}

// again posts a receive again whose message was read.
func (r *receives) again(i int) error {
	clear(r.mems[i]) // there may be keys in it
	return r.qp.PostRecv(r.wrs[i : i+1]...)
}

// close releases the memory. The QP has ended.
func (r *receives) close() {
	for _, mr := range r.mrs {
		_ = mr.Close()
	}
}
