package streamperf

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// places is how many pieces the memory for RDMA Writes has: as much as an rsocket has at first.
const places = 4

// acceptWrites offers memory to RDMA Writes.
func (v *service) acceptWrites(ctx context.Context, n side, cr *iwarp.ConnRequest) error {
	mr, err := n.pd.RegisterMR(make([]byte, places*v.Size), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	if err != nil {
		return err
	}
	where, err := mr.Advertise(0, places*v.Size).AppendBinary(nil)
	if err != nil {
		return err
	}
	_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: n.pd, PrivateData: where, MPA: mpaOf(v.CRC)})
	return err
}

// A writer writes to the memory of a service.
type writer struct {
	qp   *iwarp.QP
	to   [places]iwarp.RemoteBuffer
	from []iwarp.SGE // one element
	last iwarp.SGE   // one octet
}

// writes opens a service with memory, and connects to it.
func (s *stand) writes(name string, what *service) (*contest.Contender, error) {
	n, addr, err := s.near(what)
	if err != nil {
		return nil, err
	}
	from, err := n.pd.RegisterMR(peer.SourceOf(what.Size), 0, nil)
	if err != nil {
		return nil, err
	}
	last, err := n.pd.RegisterMR(make([]byte, 1), stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	w := &writer{from: []iwarp.SGE{from.Slice(0, what.Size)}, last: last.Slice(0, 1)}
	if w.qp, err = s.dial(n, addr, &iwarp.QPConfig{PD: n.pd, MPA: mpaOf(what.CRC)}); err != nil {
		return nil, err
	}
	var all iwarp.RemoteBuffer
	if err := all.UnmarshalBinary(w.qp.PrivateData()); err != nil {
		return nil, err
	}
	for i := range w.to {
		w.to[i] = iwarp.RemoteBuffer{STag: all.STag, TO: all.TO + uint64(i*what.Size), Len: uint32(what.Size)}
	}
	return &contest.Contender{Name: name, Size: what.Size, Run: w.run}, nil
}

// run writes n pieces, and waits until they have been placed.
func (w *writer) run(n int) error {
	ctx := context.Background() // a context that can end would cost an allocation
	for i := range n {
		if err := w.qp.RDMAWrite(ctx, w.to[i%places], w.from...); err != nil {
			return err
		}
	}
	end := w.to[0]
	end.Len = 1
	return w.qp.RDMARead(ctx, w.last, end)
}
