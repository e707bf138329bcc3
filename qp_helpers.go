package iwarp

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp/stag"
)

// The blocking helpers post work requests and wait for their completions; the package
// documentation has the rules.

// Send sends the octets of local as one message, and returns when they have been handed to the
// network.
func (qp *QP) Send(ctx context.Context, local ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpSend, Local: local})
	return err
}

// RDMAWrite writes the octets of src to the peer's memory, and returns when they have been
// handed to the network. A later RDMA Read, or a message of the peer, confirms that they have
// been placed (RFC 5040 section 5.5).
func (qp *QP) RDMAWrite(ctx context.Context, dst RemoteBuffer, src ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAWrite, Local: src, Remote: dst})
	return err
}

// RDMARead reads dst.Len octets of the peer's memory into dst, and returns when they have been
// placed. Until then the contents of dst are indeterminate, and other code must not write to
// it. A region with neither RemoteWrite nor RemoteAtomic is the fastest sink: octets are then
// received directly into it.
func (qp *QP) RDMARead(ctx context.Context, dst SGE, src RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMARead, Local: []SGE{dst}, Remote: src})
	return err
}

// FetchAdd adds to the 64-bit integer at the beginning of at, and returns its previous value.
// See [SendWR] for the requirements on at.
func (qp *QP) FetchAdd(ctx context.Context, at RemoteBuffer, add uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpFetchAdd, Remote: at, Add: add})
	return wc.Old, err
}

// CompareSwap replaces the 64-bit integer at the beginning of at by new if it equals old. It
// returns the previous value, which is old if the integer was replaced. See [SendWR] for the
// requirements on at.
func (qp *QP) CompareSwap(ctx context.Context, at RemoteBuffer, old, new uint64) (prev uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpCompareSwap, Remote: at, Compare: old, Swap: new})
	return wc.Old, err
}

// SendInvalidate is like Send, and also invalidates an STag of the peer when the peer receives
// the message (RFC 5040 section 5.3). The STag must be that of a window, or of a region that
// is bound to the peer's QP. The WC of the peer's receive reports it in its field STag.
func (qp *QP) SendInvalidate(ctx context.Context, invalidate stag.STag, local ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpSendInvalidate, Invalidate: invalidate, Local: local})
	return err
}

// SendImmediate sends eight octets of Immediate Data, which consume one of the peer's receives
// but are not placed in its memory (RFC 7306 section 6). It returns when they have been handed
// to the network. See [SendWR], and [QP.RecvWC] for the receiving side.
func (qp *QP) SendImmediate(ctx context.Context, imm [8]byte) error {
	_, err := qp.do(ctx, SendWR{Op: OpImmediate, Imm: imm})
	return err
}

// RDMAWriteImm is like RDMAWrite, followed by Immediate Data, which tells the peer that the
// octets have been placed.
func (qp *QP) RDMAWriteImm(ctx context.Context, dst RemoteBuffer, imm [8]byte, src ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAWriteImm, Local: src, Remote: dst, Imm: imm})
	return err
}

// RDMAReadInvalidate is like RDMARead, and also invalidates the STag of dst's region when the
// octets have been placed.
func (qp *QP) RDMAReadInvalidate(ctx context.Context, dst SGE, src RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAReadInvalidate, Local: []SGE{dst}, Remote: src})
	return err
}

// Swap replaces the 64-bit integer at the beginning of at by new, and returns its previous
// value. See [SendWR] for the requirements on at.
func (qp *QP) Swap(ctx context.Context, at RemoteBuffer, new uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpSwap, Remote: at, Swap: new})
	return wc.Old, err
}

// Bind binds a window to the octets of to, with TOs from 0, and returns when the binding is in
// effect. [MW.Advertise] then returns what the peer needs. The region must have the right
// MWBind. If the Bind is refused, with StatusBind, the QP ends, as after every failure.
func (qp *QP) Bind(ctx context.Context, mw *MW, to SGE, access stag.Access) error {
	_, err := qp.do(ctx, SendWR{Op: OpBind, MW: mw, Local: []SGE{to}, Access: access})
	return err
}

// Register gives a region of [PD.AllocMR] its memory, with TOs from 0, and returns when the
// registration is in effect. For a Buffer, or another base TO, post an OpRegister, or call
// [QP.Do]. If the Register is refused, with StatusBind, the QP ends.
func (qp *QP) Register(ctx context.Context, mr *MR, memory []byte, access stag.Access) error {
	_, err := qp.do(ctx, SendWR{Op: OpRegister, MR: mr, Memory: memory, Access: access})
	return err
}

// LocalInvalidate invalidates the STag of a region or window of this side, after all work that
// was posted before. It returns when nothing more can be placed through the STag. If the STag
// does not exist, or no longer exists, or this QP may not use it, the request is refused, with
// StatusBind, and the QP ends. An STag that is already invalid may be invalidated again.
// [MR.Invalidate] and [MW.Invalidate] are not ordered with work requests, and end no QP.
func (qp *QP) LocalInvalidate(ctx context.Context, s stag.STag) error {
	_, err := qp.do(ctx, SendWR{Op: OpLocalInvalidate, Flags: LocalFence, Invalidate: s})
	return err
}

// Recv posts one receive and returns the length of the message that fills it. The length is 0
// for Immediate Data, which [QP.RecvWC] returns. Receives that were posted earlier are filled
// first. If ctx ends, the receive stays posted, and the message that fills it is lost to the
// application.
func (qp *QP) Recv(ctx context.Context, into SGE) (n int, err error) {
	wc, err := qp.RecvWC(ctx, into)
	return int(wc.Len), err
}

// RecvWC is like Recv, but returns the whole completion, with the Immediate Data of the
// message, the STag that the message has invalidated, and whether the message was Solicited.
// Without an SGE it accepts an empty message or Immediate Data.
func (qp *QP) RecvWC(ctx context.Context, into ...SGE) (wc WC, err error) {
	w := qp.helper()
	err = qp.recvSlots.Wait(ctx, ErrQueueFull, func() error {
		_, err := qp.postRecv([]RecvWR{{Local: into}}, w)
		return err
	})
	if err == nil {
		wc, err = w.wait(ctx)
	}
	return wc, qp.waiting(ctx, OpRecv, err)
}

// do posts wr, waiting for a free slot if necessary, and waits for its completion.
func (qp *QP) do(ctx context.Context, wr SendWR) (wc WC, err error) {
	w := qp.helper()
	err = qp.sendSlots.Wait(ctx, ErrQueueFull, func() error {
		return qp.sendIfFull(qp.postSend([]SendWR{wr}, nil, []*helper{w}))
	})
	if err == nil {
		wc, err = w.wait(ctx)
	} else if post, ok := errors.AsType[*PostError](err); ok {
		err = post.Err
	}
	return wc, qp.waiting(ctx, wr.Op, err)
}

// sendIfFull returns err. If err is a full queue, the caller will wait for its slots, so
// sendIfFull first sends the work that may have been left for the caller to send.
func (qp *QP) sendIfFull(err error) error {
	if conn := qp.conn.Load(); conn != nil && errors.Is(err, ErrQueueFull) {
		conn.Post()
	}
	return err
}
