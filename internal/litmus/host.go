package main

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A side is one of the two hosts.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	vars area // what the peer accesses, by variable and slot
	own  area // sources, sinks and receives, by operation and slot
	disk *disk

	varsMR, ownMR, diskMR, slowMR *iwarp.MR
	remote, remoteDisk, slow      iwarp.RemoteBuffer // for the peer

	qp     *iwarp.QP                       // of stream A
	single [variables][mostSlots]*iwarp.MR // regions of one block, of the runs of a burst
}

const forPeers = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite | stag.RemoteAtomic

func newSide(cfg *iwarp.Config, g geometry) (*side, error) {
	rnic, err := iwarp.Open(cfg)
	if err != nil {
		return nil, err
	}
	h := &side{rnic: rnic, vars: newArea(g, int(variables)), own: newArea(g, maxOps), disk: newDisk(g)}
	if h.pd, err = rnic.AllocPD(); err != nil {
		return h, err
	}
	return h, h.register()
}

func (h *side) register() (err error) {
	if h.varsMR, err = h.pd.RegisterMR(h.vars.bytes, forPeers, nil); err != nil {
		return err
	}
	if h.ownMR, err = h.pd.RegisterMR(h.own.bytes, stag.LocalWrite, nil); err != nil {
		return err
	}
	if h.diskMR, err = h.pd.RegisterBuffer(h.disk, forPeers, &iwarp.MROptions{Durable: h.disk}); err != nil {
		return err
	}
	slow := new(slowBuffer)
	if h.slowMR, err = h.pd.RegisterBuffer(slow, forPeers, nil); err != nil {
		return err
	}
	h.remote = h.varsMR.Advertise(0, len(h.vars.bytes))
	h.remoteDisk = h.diskMR.Advertise(0, len(h.disk.cache))
	h.slow = h.slowMR.Advertise(0, slowLen)
	return nil
}

// registerSingle makes a region of one block, which only stream A may use.
func (h *side) registerSingle(v variable, slot int) (err error) {
	octets := h.vars.bytes[h.vars.octets(int(v), slot):][:h.vars.blockLen()]
	h.single[v][slot], err = h.pd.RegisterMR(octets, forPeers, &iwarp.MROptions{QP: h.qp})
	return err
}

func (h *side) closeSingle(v variable, slot int) error {
	mr := h.single[v][slot]
	h.single[v][slot] = nil
	return mr.Close()
}

// advertised returns the variable of a slot, for the peer.
func (h *side) advertised(v variable, slot, words int) iwarp.RemoteBuffer {
	switch {
	case v == nothing:
		return iwarp.RemoteBuffer{}
	case v == e:
		return h.remoteDisk.Slice(h.disk.place(e, slot), wordLen)
	case v == p:
		return h.remoteDisk.Slice(h.disk.place(p, slot), words*wordLen)
	case v == w:
		return h.single[w][slot].Advertise(0, words*wordLen)
	case v.integer():
		words = 1
	}
	return h.remote.Slice(h.vars.octets(int(v), slot), words*wordLen)
}

// local returns where an operation of this side reads from, or receives into.
func (h *side) local(v variable, op, slot, words int) iwarp.SGE {
	switch v {
	case nothing:
		return h.ownMR.Slice(h.own.octets(op, slot), words*wordLen)
	case s:
		return h.single[s][slot].Slice(0, words*wordLen)
	default:
		return h.varsMR.Slice(h.vars.octets(int(v), slot), words*wordLen)
	}
}

// memory returns the memory that local names.
func (h *side) memory(v variable, op, slot, words int) []uint64 {
	if v == nothing {
		return h.own.block(op, slot, words)
	}
	return h.vars.block(int(v), slot, words)
}

// valid returns 1 if a region of one block is valid, and 0 otherwise. It posts a work request that is
// refused in any case; the error tells the two apart.
func (h *side) valid(v variable, slot int) uint8 {
	err := h.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{h.single[v][slot].Slice(0, wordLen), {Len: 1}}})
	if errors.Is(err, iwarp.ErrInvalidSTag) {
		return 0
	}
	return 1
}

// look returns what this side finds in a variable of a run.
func (h *side) look(s sight, slot, words int, run uint64) uint8 {
	switch {
	case s.how == durable:
		return h.disk.durable(s.of, slot, words, run)
	case s.how == valid:
		return h.valid(s.of, slot)
	case s.of.integer():
		return valueOf(h.vars.integer(s.of, slot).Load(), run)
	default:
		return valueIn(h.vars.block(int(s.of), slot, words), run)
	}
}
