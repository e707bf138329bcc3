package rdma9p

import (
	"context"
	"sync"

	"github.com/goiwarp/iwarp"
)

// sends holds the slots of the send queue and the buffers of answers. A goroutine that sends takes a slot before it takes the
// lock of the connection, because waiting for a slot may mean waiting for the network, and posts under the lock.
type sends struct {
	qp    *iwarp.QP
	depth int

	mu   sync.Mutex // held by the goroutine that waits for completions
	used int        // slots
	bufs *buffers   // nil until the session begins
	free []int      // free buffers, the most recently used ones last
	wcs  [16]iwarp.WC

	wr  [1]iwarp.SendWR // used again, under the lock of the connection
	sge [1]iwarp.SGE
}

// grow makes the buffers for answers of a session.
func (s *sends) grow(pd *iwarp.PD, n, msize int) error {
	b, err := newBuffers(pd, n, msize, s.qp)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bufs = b
	for i := range n {
		s.free = append(s.free, n-1-i)
	}
	return nil
}

// noBuffer is the ID of a Send whose octets are inline.
const noBuffer = -1

// slot waits for a slot of the send queue.
func (s *sends) slot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.poll(); s.used == s.depth; {
		if err := s.wait(); err != nil {
			return err
		}
	}
	s.used++
	return nil
}

// buffer waits for a slot and for a buffer.
func (s *sends) buffer() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.poll(); s.used == s.depth || len(s.free) == 0; {
		if err := s.wait(); err != nil {
			return noBuffer, err
		}
	}
	s.used++
	last := len(s.free) - 1
	i := s.free[last]
	s.free = s.free[:last]
	return i, nil
}

// poll takes the available completions, so that the most recently used buffers are reused. mu must be held.
func (s *sends) poll() {
	for n := len(s.wcs); n == len(s.wcs); {
		n = s.qp.SendCQ().Poll(s.wcs[:])
		s.release(s.wcs[:n])
	}
}

// wait waits for completions. There is one to wait for: all slots but two, one of the handler and one of the adapter, are posted. mu must
// be held.
func (s *sends) wait() error {
	n, err := s.qp.SendCQ().Wait(context.Background(), s.wcs[:])
	s.release(s.wcs[:n])
	return err
}

// release frees slots and buffers. Those of a QP that has ended are not used any more.
func (s *sends) release(wcs []iwarp.WC) {
	for i := range wcs {
		s.used--
		if id := int(int64(wcs[i].ID)); id != noBuffer {
			s.free = append(s.free, id)
		}
	}
}

// octets returns the memory of a buffer.
func (s *sends) octets(i int) []byte { return s.bufs.octets(i, s.bufs.size) }

// post sends the first n octets of a buffer.
func (s *sends) post(i, n int) error {
	s.sge[0] = s.bufs.slice(i, n)
	s.wr[0] = iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, Local: s.sge[:]}
	return s.qp.PostSend(s.wr[:]...)
}

// postInline sends a few octets, of which the send queue makes a copy.
func (s *sends) postInline(msg []byte) error {
	id := noBuffer
	s.wr[0] = iwarp.SendWR{ID: uint64(id), Op: iwarp.OpSend, Inline: msg}
	return s.qp.PostSend(s.wr[:]...)
}

// close frees the memory when the QP has ended.
func (s *sends) close() error {
	if s.bufs == nil {
		return nil
	}
	return s.bufs.mr.Close()
}
