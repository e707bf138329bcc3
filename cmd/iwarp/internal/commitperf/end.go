package commitperf

import (
	"context"
	"errors"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// An end is the client's end of a connection.
type end struct {
	qp   *iwarp.QP
	data *iwarp.MR          // what is written
	to   iwarp.RemoteBuffer // where to
	wrs  [2]iwarp.SendWR    // a push
	ask  []byte             // where data is: a pull
	wcs  [1]iwarp.WC
}

// connect makes the i-th connection. Of one that is pulled from, a goroutine of the target
// takes care; of the others the target knows nothing.
func (c *cluster) connect(ctx context.Context, pd *iwarp.PD, i int, pulled bool) (*end, error) {
	enabled := &iwarp.CommitOptions{Negotiate: true}
	served := make(chan error, 1)
	c.serving.Go(func() {
		cr, err := c.l.Accept(ctx)
		var s *server
		if err == nil {
			s = &server{cluster: c, slot: i}
			s.qp, err = cr.Accept(ctx, &iwarp.QPConfig{PD: c.pd, Commit: enabled, Setup: s.setup})
		}
		served <- err
		if err == nil && pulled {
			s.serve(ctx)
		}
	})
	qp, err := c.client.Dial(ctx, "tcp", c.l.Addr().String(), &iwarp.QPConfig{PD: pd, Commit: enabled})
	if err = errors.Join(err, <-served); err != nil {
		return nil, err
	}
	e := &end{qp: qp, to: c.mr.Advertise(i*slot, slot)}
	if e.data, err = pd.RegisterMR(make([]byte, slot), stag.RemoteRead, nil); err != nil {
		return nil, err
	}
	e.wrs = [2]iwarp.SendWR{
		{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{e.data.Slice(0, slot)}, Remote: e.to},
		{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{e.to}},
	}
	e.ask, err = e.data.Advertise(0, slot).AppendBinary(nil)
	return e, err
}

// push writes the octets to the target and makes them durable.
func (e *end) push(ctx context.Context) error {
	if err := e.qp.PostSend(e.wrs[:]...); err != nil {
		return err
	}
	return e.wait(ctx, e.qp.SendCQ())
}

// pull has the target fetch the octets and make them durable.
func (e *end) pull(ctx context.Context) error {
	if err := e.qp.PostRecv(iwarp.RecvWR{}); err != nil {
		return err
	}
	if err := e.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: e.ask}); err != nil {
		return err
	}
	return e.wait(ctx, e.qp.RecvCQ())
}

func (e *end) emptyRead(ctx context.Context) error {
	if err := e.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead}); err != nil {
		return err
	}
	return e.wait(ctx, e.qp.SendCQ())
}

func (e *end) wait(ctx context.Context, cq *iwarp.CQ) error {
	if _, err := cq.Wait(ctx, e.wcs[:]); err != nil {
		return err
	}
	return e.wcs[0].Err()
}

// A server answers the pulls of one connection.
type server struct {
	*cluster
	slot int
	qp   *iwarp.QP
	ask  []byte
	said *iwarp.MR // ask
	wcs  [1]iwarp.WC
}

func (s *server) setup(context.Context, *iwarp.QP) (err error) {
	s.ask = make([]byte, 16)
	s.said, err = s.pd.RegisterMR(s.ask, stag.LocalWrite, nil)
	return err
}

func (s *server) serve(ctx context.Context) {
	for {
		if err := s.serveOne(ctx); err != nil {
			_ = s.qp.Abort()
			return
		}
	}
}

func (s *server) serveOne(ctx context.Context) error {
	if err := s.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{s.said.Slice(0, len(s.ask))}}); err != nil {
		return err
	}
	if err := s.wait(ctx, s.qp.RecvCQ()); err != nil {
		return err
	}
	var from iwarp.RemoteBuffer
	if err := from.UnmarshalBinary(s.ask); err != nil {
		return err
	}
	if from.Len > slot {
		return io.ErrShortBuffer
	}
	err := s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{s.mr.Slice(s.slot*slot, int(from.Len))}, Remote: from})
	if err != nil {
		return err
	}
	if err := s.wait(ctx, s.qp.SendCQ()); err != nil {
		return err
	}
	if err := s.flusher.Flush(ctx, int64(s.slot*slot), int64(from.Len)); err != nil {
		return err
	}
	return s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled})
}

func (s *server) wait(ctx context.Context, cq *iwarp.CQ) error {
	if _, err := cq.Wait(ctx, s.wcs[:]); err != nil {
		return err
	}
	return s.wcs[0].Err()
}
