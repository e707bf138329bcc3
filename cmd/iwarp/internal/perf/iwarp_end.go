package perf

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// An rdmaEnd is either end of a connection of the library under test.
type rdmaEnd struct {
	w        *workload
	pd       *iwarp.PD
	qp       *iwarp.QP
	cq       *iwarp.CQ
	src, dst *iwarp.MR // octets that are sent or that the peer reads; octets that come
	msgs     *iwarp.MR // the receives, one slot for each
	theirs   windows
	n        int // operations of the next run

	sends []iwarp.SendWR // one for each slot of the depth, filled in once
	last  [1]iwarp.SendWR
	recvs []iwarp.RecvWR // one for each receive, then space to repost a round of them
	again []iwarp.RecvWR
	wcs   [64]iwarp.WC
}

// windows is the memory of one end that the other may access. It is sent in the private
// data of the set-up.
type windows struct{ src, dst iwarp.RemoteBuffer }

const windowLen = 16

func (v *windows) append(b []byte) []byte {
	b, _ = v.src.AppendBinary(b) // never fails
	b, _ = v.dst.AppendBinary(b)
	return b
}

func (v *windows) parse(b []byte) error {
	if len(b) != 2*windowLen {
		return fmt.Errorf("private data of %d octets", len(b))
	}
	if err := v.src.UnmarshalBinary(b[:windowLen]); err != nil {
		return err
	}
	return v.dst.UnmarshalBinary(b[windowLen:])
}

// receives returns how many receives are posted: enough for the messages that a peer may
// have outstanding while this side reposts, within reason.
func (w *workload) receives() int {
	const memory, most = 64 << 20, 4096
	return max(min(8*w.Depth, most, memory/w.slot()), min(2*w.Depth, most), 16)
}

// newEnd registers the memory of one end.
func newEnd(r *iwarp.RNIC, pd *iwarp.PD, w *workload) (*rdmaEnd, error) {
	e := &rdmaEnd{w: w, pd: pd}
	n := w.receives()
	var err error
	if e.cq, err = r.CreateCQ(e.sendDepth() + n); err != nil {
		return nil, err
	}
	e.cq.SetBusyPoll(w.Poll)
	if w.Wait == waitBlock {
		e.cq.SetWaitMode(iwarp.WaitBlock)
	}
	// src is never written to, so it need not be copied before it is sent.
	if e.src, err = pd.RegisterMR(peer.SourceOf(w.Region), stag.RemoteRead, nil); err != nil {
		return nil, err
	}
	whole := (w.sinkLen() + atomicSize - 1) &^ (atomicSize - 1) // so that the first octet is aligned
	if e.dst, err = pd.RegisterMR(make([]byte, whole), w.sinkAccess(), nil); err != nil {
		return nil, err
	}
	slot := w.slot()
	if !w.messages() {
		n = 1
	}
	if e.msgs, err = pd.RegisterMR(make([]byte, n*slot), stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	for i := range n {
		e.recvs = append(e.recvs, iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{e.msgs.Slice(i*slot, slot)}})
	}
	e.again = make([]iwarp.RecvWR, 0, len(e.wcs))
	return e, nil
}

// sinkAccess returns the access rights of dst. If it is the sink of Reads, no peer may write to it:
// otherwise the CRC of octets could not be verified after they are placed.
func (w *workload) sinkAccess() stag.Access {
	if w.Op == opRead {
		return stag.LocalWrite
	}
	return stag.LocalWrite | stag.RemoteWrite | stag.RemoteAtomic
}

// messages reports whether the workload needs receives.
func (w *workload) messages() bool { return w.Op == opSend || w.Op == opPingPong || w.Op == opImm }

// slot returns how many octets a receive has.
func (w *workload) slot() int {
	if w.Op == opSend || w.Op == opPingPong {
		return w.Size
	}
	return 1
}

func (w *workload) mpa() iwarp.MPAOptions {
	return iwarp.MPAOptions{NoCRC: !w.CRC, Markers: w.Markers, MaxULPDU: w.ULPDU}
}

// sendDepth leaves room for the work requests that end a run.
func (e *rdmaEnd) sendDepth() int { return e.w.Depth + 8 }

func (e *rdmaEnd) window() windows {
	return windows{src: e.src.Advertise(0, e.w.Region), dst: e.dst.Advertise(0, e.w.Region)}
}

// config returns the configuration of the QPs of both ends.
func (e *rdmaEnd) config() *iwarp.QPConfig {
	own := e.window()
	return &iwarp.QPConfig{
		PD:          e.pd,
		SendCQ:      e.cq,
		RecvCQ:      e.cq,
		SendDepth:   e.sendDepth(),
		RecvDepth:   len(e.recvs),
		IRD:         min(e.w.Depth+1, 1024),
		ORD:         min(e.w.Depth+1, 1024),
		PrivateData: own.append(nil),
		MPA:         e.w.mpa(),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			e.qp = qp
			return qp.PostRecv(e.recvs...)
		},
	}
}

// connected fills in the work requests, when the peer's windows are known. Slot i
// works on the i-th stretch of the region, and the stretches repeat.
func (e *rdmaEnd) connected(theirs windows) error {
	e.theirs = theirs
	w := e.w
	if w.Region > int(theirs.src.Len) || w.Region > int(theirs.dst.Len) {
		return fmt.Errorf("the peer's regions have %d and %d octets, not %d", theirs.src.Len, theirs.dst.Len, w.Region)
	}
	for i := range w.slots() {
		at := w.stretch(i)
		wr := iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{e.src.Slice(at, w.Size)}}
		switch w.Op {
		case opWrite:
			wr.Op, wr.Remote = iwarp.OpRDMAWrite, part(theirs.dst, at, w.Size)
		case opRead:
			wr.Op, wr.Remote = iwarp.OpRDMARead, part(theirs.src, at, w.Size)
			wr.Local[0] = e.dst.Slice(w.sink(i), w.Size)
		case opImm:
			wr.Op, wr.Remote = iwarp.OpRDMAWriteImm, part(theirs.dst, at, w.Size)
		case opAtomic:
			wr = iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: part(theirs.dst, at, w.Size), Add: 1}
		}
		e.sends = append(e.sends, wr)
	}
	e.sends = append(e.sends, e.sends[:w.Depth]...) // so that no post has to wrap around
	return nil
}

// part returns a stretch of a remote buffer.
func part(rb iwarp.RemoteBuffer, off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: rb.STag, TO: rb.TO + uint64(off), Len: uint32(n)}
}
