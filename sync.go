package iwarp

import (
	"context"
	"errors"
)

// The blocking helpers post one work request and wait for it. They wait for room
// in the queue, and for the completion, under ctx. A ctx that ends stops the
// waiting and not the work request: its memory stays the QP's until it is done, at
// the latest when the QP has ended (see QP.Done). What need not block succeeds even
// if ctx is already done.

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

// Recv posts one receive and returns the length of the message that fills it, 0 if
// that is Immediate Data.
// Receives that were posted before it are filled first. Beware of ending ctx: the
// receive stays posted, and the message that fills it is lost to the application.
func (qp *QP) Recv(ctx context.Context, into SGE) (n int, err error) {
	w := qp.waiter()
	err = qp.recvRoom.whenRoom(ctx, func() error {
		_, err := qp.postRecv([]RecvWR{{Local: []SGE{into}}}, w)
		return err
	})
	if err != nil {
		return 0, err
	}
	wc, err := w.wait(ctx)
	return int(wc.Len), err
}

// do posts wr, waiting for room if need be, and waits for its completion.
func (qp *QP) do(ctx context.Context, wr SendWR) (WC, error) {
	w := qp.waiter()
	err := qp.sendRoom.whenRoom(ctx, func() error {
		qp.tx.dispatch()
		return qp.postSend([]SendWR{wr}, w)
	})
	if err != nil {
		var post *PostError
		if errors.As(err, &post) {
			err = post.Err
		}
		return WC{}, err
	}
	return w.wait(ctx)
}
