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

// A memory holds what a connection uses of the RNIC: a PD of its own, since the STags must exist before
// the QP does, the regions, and the CQ of both queues.
type memory struct {
	pd *iwarp.PD
	cq *iwarp.CQ

	in    []byte // the two initial halves, which the peer writes; nil when both were replaced
	out   []byte // what is to be sent
	recv  []byte // of messages
	table *slotTable

	inMR, outMR, recvMR, tableMR *iwarp.MR
	halves                       [2]grownHalf
	mapped                       []*iwarp.MR // written by the peer by offset
	receives                     int
	largest                      int // of a half
}

// A grownHalf replaces a half of in.
type grownHalf struct {
	mem []byte // nil: there is none
	mr  *iwarp.MR
}

// newMemory allocates and registers the memory, and lowers Credits if the RNIC does not allow as many receives. order is the byte
// order of the slots that the peer writes.
func newMemory(r *iwarp.RNIC, cfg *Config, order wire.Order) (*memory, error) {
	cfg.Credits = max(min(cfg.Credits, r.Limits().MaxQueueDepth-spareReceives), minCredits)
	m := &memory{
		in:       make([]byte, cfg.ReadBuffer&^1),
		out:      make([]byte, cfg.WriteBuffer),
		receives: cfg.Credits + spareReceives,
		largest:  cfg.MaxReadBuffer / 2,
	}
	m.table = newSlotTable(order, wire.Entries(wire.ScaleEntries(cfg.IOMap)))
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
	m.tableMR, err = m.pd.RegisterBuffer(m.table, stag.LocalWrite|stag.RemoteWrite, nil)
	return err
}

// release releases what was allocated. The QP has ended, or was never made.
func (m *memory) release() error {
	var errs []error
	for _, mr := range append(m.mapped, m.inMR, m.outMR, m.recvMR, m.tableMR, m.halves[0].mr, m.halves[1].mr) {
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

// half returns the initial length of each half.
func (m *memory) half() uint32 { return uint32(len(m.in) / 2) }

// octets returns the memory of a half.
func (m *memory) octets(half int) []byte {
	if own := m.halves[half].mem; own != nil {
		return own
	}
	size := len(m.in) / 2
	return m.in[half*size:][:size]
}

// grow replaces a half that has been read by one of twice its size, before the peer is told of it again. It
// reports false, and changes nothing, if the half has its maximum size, or if the RNIC cannot register another MR.
func (m *memory) grow(half int) (at wire.Slot, ok bool) {
	size := min(2*len(m.octets(half)), m.largest)
	if size <= len(m.octets(half)) {
		return at, false
	}
	g := grownHalf{mem: make([]byte, size)}
	var err error
	if g.mr, err = m.pd.RegisterMR(g.mem, stag.LocalWrite|stag.RemoteWrite, nil); err != nil {
		return at, false
	}
	if old := m.halves[half].mr; old != nil {
		_ = old.Close() // no window is bound to it
	}
	m.halves[half] = g
	if m.in != nil && m.halves[1-half].mem != nil {
		_ = m.inMR.Close() // likewise
		m.in, m.inMR = nil, nil
	}
	return wire.Slot{Key: uint32(g.mr.STag()), Length: uint32(size)}, true
}

// private returns the private data for the peer.
func (m *memory) private(cfg *Config, flags wire.Flags) wire.Private {
	return wire.Private{
		Flags:   flags | wire.FlagIOMap,
		Credits: uint16(cfg.Credits),
		IOMap:   wire.ScaleEntries(cfg.IOMap),
		Table:   wire.Table{Key: uint32(m.tableMR.STag()), Slots: stream.Slots},
		Half:    wire.Slot{Key: uint32(m.inMR.STag()), Length: m.half()},
	}
}

// receive returns the SGE of receive i, which is a piece of recv.
func (m *memory) receive(i int) iwarp.SGE {
	return m.recvMR.Slice(i*wire.MessageSize, wire.MessageSize)
}

// message returns the first n octets of receive i.
func (m *memory) message(i, n int) []byte {
	return m.recv[i*wire.MessageSize : i*wire.MessageSize+n]
}
