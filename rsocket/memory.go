package rsocket

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// spareReceives are for messages that have no credits: SGLs, and the end.
const spareReceives = 64

// A memory is what a connection has of the RNIC: a PD of its own, since the STags must be there before
// the QP is, the regions, and the CQ of both queues.
type memory struct {
	pd *iwarp.PD
	cq *iwarp.CQ

	in    []byte // two halves, which the peer writes
	out   []byte // what is to be sent
	recv  []byte // of messages
	table slotTable

	inMR, outMR, recvMR, tableMR *iwarp.MR
	receives                     int
}

// newMemory makes all of it. order is that of the slots that the peer writes.
func newMemory(r *iwarp.RNIC, cfg *Config, order wire.Order) (*memory, error) {
	m := &memory{
		in:       make([]byte, cfg.ReadBuffer&^1),
		out:      make([]byte, cfg.WriteBuffer),
		receives: min(cfg.Credits+spareReceives, r.Limits().MaxQueueDepth),
	}
	m.table.order = order
	m.recv = make([]byte, wire.MessageSize*m.receives)
	if err := m.register(r); err != nil {
		return nil, errors.Join(err, m.release())
	}
	return m, nil
}

func (m *memory) register(r *iwarp.RNIC) (err error) {
	if m.pd, err = r.AllocPD(); err != nil {
		return err
	}
	if m.cq, err = r.CreateCQ(stream.Depth + m.receives); err != nil {
		return err
	}
	if m.inMR, err = m.pd.RegisterMR(m.in, stag.LocalWrite|stag.RemoteWrite, nil); err != nil {
		return err
	}
	if m.outMR, err = m.pd.RegisterMR(m.out, 0, nil); err != nil {
		return err
	}
	if m.recvMR, err = m.pd.RegisterMR(m.recv, stag.LocalWrite, nil); err != nil {
		return err
	}
	m.tableMR, err = m.pd.RegisterBuffer(&m.table, stag.LocalWrite|stag.RemoteWrite, nil)
	return err
}

// release gives back what there is. The QP has ended, or was never made.
func (m *memory) release() error {
	var errs []error
	for _, mr := range []*iwarp.MR{m.inMR, m.outMR, m.recvMR, m.tableMR} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	if m.cq != nil {
		errs = append(errs, m.cq.Close())
	}
	if m.pd != nil {
		errs = append(errs, m.pd.Close())
	}
	return errors.Join(errs...)
}

// half is the length of each half.
func (m *memory) half() uint32 { return uint32(len(m.in) / 2) }

// private is what the peer is told.
func (m *memory) private(credits int, flags wire.Flags) wire.Private {
	return wire.Private{
		Flags:   flags | wire.FlagIOMap,
		Credits: uint16(credits),
		Table:   wire.Table{Key: uint32(m.tableMR.STag()), Slots: stream.Slots},
		Half:    wire.Slot{Key: uint32(m.inMR.STag()), Length: m.half()},
	}
}

// receive is the receive of a piece of recv.
func (m *memory) receive(i int) iwarp.SGE {
	return m.recvMR.Slice(i*wire.MessageSize, wire.MessageSize)
}

// message is the octets of a piece of recv.
func (m *memory) message(i, n int) []byte {
	return m.recv[i*wire.MessageSize : i*wire.MessageSize+n]
}
