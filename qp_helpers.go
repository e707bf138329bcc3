package iwarp

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp/stag"
)

// The blocking helpers post work requests and wait for them; the rules are in the package
// documentation.

// Send sends the octets of local as one message, and returns when they have been
// handed to the network.
func (qp *QP) Send(ctx context.Context, local ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpSend, Local: local})
	return err
}

// RDMAWrite writes the octets of src to the peer's memory, and returns when they
// have been handed to the network. That they were placed is told by a later RDMA
// Read, or by a message of the peer (RFC 5040 section 5.5).
func (qp *QP) RDMAWrite(ctx context.Context, dst RemoteBuffer, src ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAWrite, Local: src, Remote: dst})
	return err
}

// RDMARead reads dst.Len octets of the peer's memory into dst, and returns when
// they are there. Until then the contents of dst are indeterminate, and nobody else
// may write to it. A region without RemoteWrite and RemoteAtomic is the fastest sink,
// for under CRCs what comes is then received straight into it.
func (qp *QP) RDMARead(ctx context.Context, dst SGE, src RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMARead, Local: []SGE{dst}, Remote: src})
	return err
}

// FetchAdd adds to the 64-bit integer at the beginning of at, and returns what it was
// before. See [SendWR] for what at must be.
func (qp *QP) FetchAdd(ctx context.Context, at RemoteBuffer, add uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpFetchAdd, Remote: at, Add: add})
	return wc.Old, err
}

// CompareSwap replaces the 64-bit integer at the beginning of at by new if it is old,
// and returns what it was before: old, if it was replaced. See [SendWR] for what at
// must be.
func (qp *QP) CompareSwap(ctx context.Context, at RemoteBuffer, old, new uint64) (prev uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpCompareSwap, Remote: at, Compare: old, Swap: new})
	return wc.Old, err
}

// SendInvalidate is Send, and the peer's STag is invalidated when it takes the message (RFC
// 5040 section 5.3): a window, or a region of its QP alone. Its WC.STag tells which.
func (qp *QP) SendInvalidate(ctx context.Context, invalidate stag.STag, local ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpSendInvalidate, Invalidate: invalidate, Local: local})
	return err
}

// SendImmediate sends eight octets of Immediate Data, which take one of the peer's receives
// and none of its memory (RFC 7306 section 6), and returns when they have been handed to
// the network. See [SendWR], and [QP.RecvWC] for the other side.
func (qp *QP) SendImmediate(ctx context.Context, imm [8]byte) error {
	_, err := qp.do(ctx, SendWR{Op: OpImmediate, Imm: imm})
	return err
}

// RDMAWriteImm is RDMAWrite with Immediate Data right behind it, which tell the peer that
// the octets have been placed.
func (qp *QP) RDMAWriteImm(ctx context.Context, dst RemoteBuffer, imm [8]byte, src ...SGE) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAWriteImm, Local: src, Remote: dst, Imm: imm})
	return err
}

// RDMAReadInvalidate is RDMARead, and when the octets are there the STag of dst's region is
// invalidated.
func (qp *QP) RDMAReadInvalidate(ctx context.Context, dst SGE, src RemoteBuffer) error {
	_, err := qp.do(ctx, SendWR{Op: OpRDMAReadInvalidate, Local: []SGE{dst}, Remote: src})
	return err
}

// Swap replaces the 64-bit integer at the beginning of at by new, and returns what it was
// before. See [SendWR] for what at must be.
func (qp *QP) Swap(ctx context.Context, at RemoteBuffer, new uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SendWR{Op: OpSwap, Remote: at, Swap: new})
	return wc.Old, err
}

// Bind binds a window to the octets of to, with TOs from 0, and returns when that is in
// force: then [MW.Advertise] tells what to give to the peer. The region needs MWBind. A Bind
// that is refused, with StatusBind, ends the QP, as every failure does.
func (qp *QP) Bind(ctx context.Context, mw *MW, to SGE, access stag.Access) error {
	_, err := qp.do(ctx, SendWR{Op: OpBind, MW: mw, Local: []SGE{to}, Access: access})
	return err
}

// Register gives a region of [PD.AllocMR] its memory, with TOs from 0, and returns when
// that is in force. For a Buffer, or another base TO, post an OpRegister, or call [QP.Do]. A
// Register that is refused, with StatusBind, ends the QP.
func (qp *QP) Register(ctx context.Context, mr *MR, memory []byte, access stag.Access) error {
	_, err := qp.do(ctx, SendWR{Op: OpRegister, MR: mr, Memory: memory, Access: access})
	return err
}

// LocalInvalidate invalidates the STag of a region or window of this side behind all that
// was posted before, and returns when nothing can be placed through it any more. An STag
// that is not this QP's to use, or is invalid already, is refused, with StatusBind, and the
// QP ends. [MR.Invalidate] and [MW.Invalidate] are in no order with work, and end no QP.
func (qp *QP) LocalInvalidate(ctx context.Context, s stag.STag) error {
	_, err := qp.do(ctx, SendWR{Op: OpLocalInvalidate, Flags: LocalFence, Invalidate: s})
	return err
}

// Recv posts one receive and returns the length of the message that fills it, 0 if
// that is Immediate Data, which [QP.RecvWC] returns.
// Receives that were posted before it are filled first. Beware of ending ctx: the
// receive stays posted, and the message that fills it is lost to the application.
func (qp *QP) Recv(ctx context.Context, into SGE) (n int, err error) {
	wc, err := qp.RecvWC(ctx, into)
	return int(wc.Len), err
}

// RecvWC is Recv for somebody who wants to know more of the message: its Immediate Data,
// the STag that it has invalidated, whether it was Solicited. With no SGE it takes an empty
// message or Immediate Data.
func (qp *QP) RecvWC(ctx context.Context, into ...SGE) (WC, error) {
	w := qp.helper()
	err := qp.recvSlots.Wait(ctx, ErrQueueFull, func() error {
		_, err := qp.postRecv([]RecvWR{{Local: into}}, w)
		return err
	})
	if err != nil {
		return WC{}, qp.waiting(ctx, OpRecv, err)
	}
	wc, err := w.wait(ctx)
	return wc, qp.waiting(ctx, OpRecv, err)
}

// do posts wr, waiting for room if need be, and waits for its completion.
func (qp *QP) do(ctx context.Context, wr SendWR) (WC, error) {
	w := qp.helper()
	err := qp.sendSlots.Wait(ctx, ErrQueueFull, func() error {
		return qp.sendIfFull(qp.postSend([]SendWR{wr}, []*helper{w}))
	})
	if err != nil {
		var post *PostError
		if errors.As(err, &post) {
			err = post.Err
		}
		return WC{}, qp.waiting(ctx, wr.Op, err)
	}
	wc, err := w.wait(ctx)
	return wc, qp.waiting(ctx, wr.Op, err)
}

// sendIfFull returns err. If that is a full queue, whose slots the caller is about to wait for,
// it first sends what may have been left for the caller to send.
func (qp *QP) sendIfFull(err error) error {
	if conn := qp.conn.Load(); conn != nil && errors.Is(err, ErrQueueFull) {
		conn.Post()
	}
	return err
}
