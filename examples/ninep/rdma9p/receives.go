package rdma9p

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// buffers is registered memory for messages, all of one size.
type buffers struct {
	mem  []byte
	size int
	mr   *iwarp.MR
}

// newBuffers makes n buffers for one QP or, if qp is nil, for all.
func newBuffers(pd *iwarp.PD, n, size int, qp *iwarp.QP) (*buffers, error) {
	b := &buffers{mem: make([]byte, n*size), size: size}
	var err error
	b.mr, err = pd.RegisterMR(b.mem, stag.LocalWrite, &iwarp.MROptions{QP: qp})
	return b, err
}

func (b *buffers) octets(i, n int) []byte { return b.mem[i*b.size:][:n] }

func (b *buffers) slice(i, n int) iwarp.SGE { return b.mr.Slice(i*b.size, n) }

// sharedReceives holds the receives that all connections of a Serve share.
type sharedReceives struct {
	*buffers
	srq *iwarp.SRQ
}

func newSharedReceives(pd *iwarp.PD, n, size int) (*sharedReceives, error) {
	srq, err := pd.CreateSRQ(n) // before memory is allocated: this checks n
	if err != nil {
		return nil, fmt.Errorf("Config.SRQ: %w", err)
	}
	b, err := newBuffers(pd, n, size, nil)
	if err != nil {
		return nil, errors.Join(err, srq.Close())
	}
	s := &sharedReceives{buffers: b, srq: srq}
	for i := range n {
		if err := srq.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{b.slice(i, size)}}); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *sharedReceives) close() error { return errors.Join(s.srq.Close(), s.mr.Close()) }

// receives are the receives that a connection posts for messages of its peer: first one of firstSize octets, and later those
// of a session; or those that it has taken from the SRQ. Its user must hold a lock.
type receives struct {
	qp     *iwarp.QP
	shared *sharedReceives
	first  *buffers
	own    *buffers // nil until the session begins

	wr  [1]iwarp.RecvWR // used again
	sge [1]iwarp.SGE
}

// firstID is the ID of the first receive. The others have their index.
const firstID = 1 << 32

// prepare posts the receive for the first message, before the peer can send it.
func (r *receives) prepare(pd *iwarp.PD, qp *iwarp.QP) (err error) {
	r.qp = qp
	if r.shared != nil {
		return nil
	}
	if r.first, err = newBuffers(pd, 1, firstSize, qp); err != nil {
		return err
	}
	return r.post(firstID)
}

// grow posts the receives of a session instead of the first one.
func (r *receives) grow(pd *iwarp.PD, n, msize int) (err error) {
	if r.own, err = newBuffers(pd, n, msize, r.qp); err != nil {
		return err
	}
	for i := range n {
		if err := r.post(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// post posts a receive, for the first time or again.
func (r *receives) post(id uint64) error {
	r.wr[0].ID, r.wr[0].Local = id, r.sge[:]
	switch {
	case r.shared != nil:
		r.sge[0] = r.shared.slice(int(id), r.shared.size)
		return r.shared.srq.PostRecv(r.wr[:]...)
	case id == firstID:
		r.sge[0] = r.first.slice(0, firstSize)
	default:
		r.sge[0] = r.own.slice(int(id), r.own.size)
	}
	return r.qp.PostRecv(r.wr[:]...)
}

// octets returns the message of a receive.
func (r *receives) octets(id uint64, n int) []byte {
	switch {
	case r.shared != nil:
		return r.shared.octets(int(id), n)
	case id == firstID:
		return r.first.octets(0, n)
	}
	return r.own.octets(int(id), n)
}

// close frees the memory when the QP has ended.
func (r *receives) close() error {
	var errs []error
	for _, b := range []*buffers{r.first, r.own} {
		if b != nil && b.mr != nil {
			errs = append(errs, b.mr.Close())
		}
	}
	return errors.Join(errs...)
}
