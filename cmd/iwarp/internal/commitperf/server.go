package commitperf

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// askLen is the length of the client's message: a RemoteBuffer.
const askLen = 16

// A server answers the pulls of one connection.
type server struct {
	*target
	slot   int
	qp     *iwarp.QP
	said   []byte          // the client's message
	recv   [1]iwarp.RecvWR // for the message
	fetch  [1]iwarp.SendWR // the Read
	answer [1]iwarp.SendWR
	wcs    [1]iwarp.WC
}

func (s *server) setup(context.Context, *iwarp.QP) error {
	s.said = make([]byte, askLen)
	mr, err := s.pd.RegisterMR(s.said, stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	s.recv[0].Local = []iwarp.SGE{mr.Slice(0, askLen)}
	s.fetch[0] = iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{s.mr.Slice(s.slot*slot, slot)}}
	s.answer[0] = iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}
	return nil
}

func (s *server) serve() {
	for {
		if err := s.serveOne(); err != nil {
			_ = s.qp.Abort()
			return
		}
	}
}

func (s *server) serveOne() error {
	if err := s.qp.PostRecv(s.recv[:]...); err != nil {
		return err
	}
	if err := s.wait(s.qp.RecvCQ()); err != nil {
		return err
	}
	if err := s.fetch[0].Remote.UnmarshalBinary(s.said); err != nil {
		return err
	}
	if err := s.qp.PostSend(s.fetch[:]...); err != nil {
		return err
	}
	if err := s.wait(s.qp.SendCQ()); err != nil {
		return err
	}
	if s.file != nil {
		if err := s.file.Flush(context.Background(), int64(s.slot*slot), slot); err != nil {
			return err
		}
	}
	return s.qp.PostSend(s.answer[:]...)
}

func (s *server) wait(cq *iwarp.CQ) error {
	if _, err := cq.Wait(context.Background(), s.wcs[:]); err != nil {
		return err
	}
	return s.wcs[0].Err()
}
