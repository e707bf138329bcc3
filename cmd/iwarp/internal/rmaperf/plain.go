package rmaperf

import (
	"context"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// A plain is memory that peers read by RDMA Reads.
type plain struct {
	side

	what   *service
	source []byte // the RemoteBuffer
}

func newPlain(what *service) (s *plain, err error) {
	s = &plain{what: what}
	if s.side, err = newSide(); err != nil {
		return nil, err
	}
	mr, err := s.pd.RegisterMR(peer.SourceOf(what.Size), stag.RemoteRead, nil)
	if err != nil {
		return nil, err
	}
	s.source, err = mr.Advertise(0, what.Size).AppendBinary(nil)
	return s, err
}

// take sets up a connection, which needs nothing else from this side.
func (s *plain) take(ctx context.Context, c net.Conn) error {
	setup, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	cr, err := s.rnic.Server(setup, c, nil)
	if err != nil {
		return err
	}
	_, err = cr.Accept(setup, &iwarp.QPConfig{
		PD: s.pd, IRD: s.what.Depth + 1, ORD: s.what.Depth + 1, PrivateData: s.source, MPA: iwarp.MPAOptions{NoCRC: !s.what.CRC},
	})
	return err
}

func (s *plain) close() error { return s.rnic.Close() }

// A plainArm reads by RDMA Reads.
type plainArm struct {
	side

	qp    *iwarp.QP
	cq    *iwarp.CQ
	reads []iwarp.SendWR // one for each Read that may be outstanding, twice, so that no post has to wrap around
	depth int
	wcs   [64]iwarp.WC
}

func dialPlain(ctx context.Context, addr string, what *service, size int) (a *plainArm, err error) {
	a = &plainArm{depth: what.Depth}
	if a.side, err = newSide(); err != nil {
		return nil, err
	}
	if a.cq, err = a.rnic.CreateCQ(a.depth + 16); err != nil {
		return nil, err
	}
	sinks, err := a.pd.RegisterMR(make([]byte, a.depth*size), stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	c, err := peer.Dial(addr, peer.DefaultCC)
	if err != nil {
		return nil, err
	}
	a.qp, err = a.rnic.Client(ctx, c, &iwarp.QPConfig{
		PD: a.pd, SendCQ: a.cq, RecvCQ: a.cq, SendDepth: a.depth, RecvDepth: 1,
		IRD: a.depth + 1, ORD: a.depth + 1, MPA: iwarp.MPAOptions{NoCRC: !what.CRC},
	})
	if err != nil {
		return nil, err
	}
	var source iwarp.RemoteBuffer
	if err := source.UnmarshalBinary(a.qp.PrivateData()); err != nil {
		return nil, err
	}
	for i := range a.depth {
		from := iwarp.RemoteBuffer{STag: source.STag, TO: source.TO + uint64(i*size), Len: uint32(size)}
		a.reads = append(a.reads, iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sinks.Slice(i*size, size)}, Remote: from})
	}
	a.reads = append(a.reads, a.reads...)
	return a, nil
}

// run posts as many Reads as may be outstanding, and waits for some, until n are done.
func (a *plainArm) run(n int) error {
	for posted, done := 0, 0; done < n; {
		if k := min(n-posted, a.depth-(posted-done)); k > 0 {
			at := posted % a.depth
			if err := a.qp.PostSend(a.reads[at : at+k]...); err != nil {
				return err
			}
			posted += k
		}
		got, err := a.cq.Wait(context.Background(), a.wcs[:]) // a context that can end would cost an allocation
		if err != nil {
			return err
		}
		for i := range a.wcs[:got] {
			if err := a.wcs[i].Err(); err != nil {
				return err
			}
		}
		done += got
	}
	return nil
}

func (a *plainArm) close() error { return a.rnic.Close() }
