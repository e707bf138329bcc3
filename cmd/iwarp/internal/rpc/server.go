package rpc

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A Server is the server's end of a connection.
type Server struct {
	shape Shape
	qp    *iwarp.QP
	cq    *iwarp.CQ
	data  *iwarp.MR
	mem   []byte // the octets of the server

	recvs []iwarp.RecvWR // by ID
	msgs  []byte         // of the receives
	asked []request      // by slot
	from  []iwarp.SGE    // likewise: the octets of the response
	tails []byte         // likewise: the responses
	again []iwarp.RecvWR // to post next
	sends []iwarp.SendWR
	wcs   [batch]iwarp.WC
}

// NewServer makes a server. The caller makes its QP from Config. mem has Region octets, and no other server of the
// RNIC changes any of them.
func NewServer(r *iwarp.RNIC, pd *iwarp.PD, shape Shape, mem []byte) (*Server, error) {
	s := &Server{shape: shape, mem: mem}
	d := shape.Depth
	var err error
	if s.cq, err = r.CreateCQ(8*d + 16); err != nil {
		return nil, err
	}
	var access stag.Access // memory that is never written to is not copied before it is sent
	if shape.Kind == Put {
		access = stag.LocalWrite
	}
	if s.data, err = pd.RegisterMR(mem, access, nil); err != nil {
		return nil, err
	}
	n := shape.receiveLen()
	s.msgs, s.tails = make([]byte, d*n), make([]byte, d*responseLen)
	mr, err := pd.RegisterMR(s.msgs, stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	for i := range d {
		s.recvs = append(s.recvs, iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(i*n, n)}})
		binary.BigEndian.PutUint32(s.tails[i*responseLen:], uint32(i))
	}
	s.asked, s.from = make([]request, d), make([]iwarp.SGE, d)
	return s, nil
}

// Config returns the configuration of the QP.
func (s *Server) Config(pd *iwarp.PD) *iwarp.QPConfig {
	d := s.shape.Depth
	return &iwarp.QPConfig{
		PD: pd, SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 6*d + 8, RecvDepth: d,
		IRD: -1, ORD: d, MPA: s.shape.mpa(),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			s.qp = qp
			return qp.PostRecv(s.recvs...)
		},
	}
}

// Serve answers requests until the end of the QP.
func (s *Server) Serve() error {
	for {
		n, err := s.cq.Wait(context.Background(), s.wcs[:])
		if err != nil {
			return err
		}
		s.again, s.sends = s.again[:0], s.sends[:0]
		for i := range s.wcs[:n] {
			if err := s.completed(&s.wcs[i]); err != nil {
				return err
			}
		}
		if len(s.again) > 0 {
			if err := s.qp.PostRecv(s.again...); err != nil {
				return err
			}
		}
		if len(s.sends) > 0 {
			if err := s.qp.PostSend(s.sends...); err != nil {
				return err
			}
		}
	}
}

func (s *Server) completed(wc *iwarp.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Op == iwarp.OpRDMARead {
		s.respond(int(wc.ID))
		return nil
	}
	msg := s.msgs[int(wc.ID)*s.shape.receiveLen():][:s.shape.receiveLen()]
	var q request
	q.get(msg)
	if wc.Len != uint32(len(msg)) || q.slot >= uint32(len(s.asked)) || q.offset > uint64(len(s.mem)-s.shape.Size) {
		return fmt.Errorf("a request of %d octets for slot %d at %d", wc.Len, q.slot, q.offset)
	}
	s.again = append(s.again, s.recvs[wc.ID])
	i := int(q.slot)
	s.asked[i] = q
	s.from[i] = s.data.Slice(int(q.offset), s.shape.Size)
	switch remote := (iwarp.RemoteBuffer{STag: q.stag, Len: uint32(s.shape.Size)}); s.shape.Kind {
	case Get:
		s.sends = append(s.sends, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: s.from[i : i+1], Remote: remote})
		s.respond(i)
	case Put:
		s.sends = append(s.sends, iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMARead, Local: s.from[i : i+1], Remote: remote})
	case PutInside:
		copy(s.mem[q.offset:], msg[requestLen:])
		s.respond(i)
	}
	return nil
}

// respond adds a response to what is posted next.
func (s *Server) respond(i int) {
	wr := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: s.tails[i*responseLen:][:responseLen]}
	if t := s.asked[i].stag; t != 0 {
		wr.Op, wr.Invalidate = iwarp.OpSendInvalidate, t
	}
	s.sends = append(s.sends, wr)
}
