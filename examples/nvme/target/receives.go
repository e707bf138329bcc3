package target

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// receives holds buffers for messages of hosts.
type receives struct {
	mem  []byte
	size int // octets of each
	mr   *iwarp.MR
}

// newReceives makes n receives for one QP, or for all.
func newReceives(pd *iwarp.PD, n, size int, qp *iwarp.QP) (*receives, error) {
	r := &receives{mem: make([]byte, n*size), size: size}
	var err error
	r.mr, err = pd.RegisterMR(r.mem, stag.LocalWrite, &iwarp.MROptions{QP: qp})
	return r, err
}

func (r *receives) octets(i int) []byte { return r.mem[i*r.size : (i+1)*r.size] }

// postReceive posts a receive, again or for the first time. mu is held.
func (q *queue) postReceive(i int) error {
	q.recv[0].ID = uint64(i)
	q.into[0] = q.recvs.mr.Slice(i*q.recvs.size, q.recvs.size)
	if s := q.t.shared; s != nil {
		return s.srq.PostRecv(q.recv[:]...)
	}
	return q.qp.PostRecv(q.recv[:]...)
}

// sharedReceives holds the receives of an SRQ.
type sharedReceives struct {
	*receives
	srq *iwarp.SRQ
}

func newSharedReceives(t *Target) (s *sharedReceives, err error) {
	n := t.cfg.SRQ
	m := t.cfg.model()
	s = new(sharedReceives)
	if s.srq, err = t.pd.CreateSRQ(n); err != nil { // before memory is allocated: this checks n
		return s, fmt.Errorf("nvme: Config.SRQ: %w", err)
	}
	if s.receives, err = newReceives(t.pd, n, m.ReceiveSize(1), nil); err != nil {
		return s, err
	}
	for i := range n {
		if err := s.srq.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{s.mr.Slice(i*s.size, s.size)}}); err != nil {
			return s, err
		}
	}
	return s, nil
}

// takeBack posts the receives of a queue that has ended again.
func (s *sharedReceives) takeBack(q *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, i := range q.kept {
		if err := q.postReceive(i); err != nil {
			q.t.lines.warn("a receive of the SRQ is lost", "err", err)
		}
	}
	q.kept = nil
}

func (s *sharedReceives) close() error {
	var errs []error
	if s.srq != nil {
		errs = append(errs, s.srq.Close())
	}
	if s.receives != nil && s.mr != nil {
		errs = append(errs, s.mr.Close())
	}
	return errors.Join(errs...)
}
