package rpcrdma

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/rpcrdma/internal/plan"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A callState is the state of a call.
type callState uint8

const (
	free      callState = iota // its receive is posted
	pulling                    // it waits for memory, or for its RDMA Reads
	waiting                    // for ReadCall
	handed                     // over to the user of the package
	answering                  // in Reply
	refused                    // an error is to be sent, or the connection is ending
)

// A Call is an RPC call of a client. It and its memory belong to the caller of ReadCall until Reply, and must not be
// used afterwards.
type Call struct {
	c     *Conn
	index int
	recv  []byte
	into  [1]iwarp.SGE
	wait  waiter

	state    callState // under mu of the connection
	hdr      wire.Header
	body     []byte // what follows the header, in recv
	rpc      wire.CallHeader
	plan     plan.Call
	handle   uint32
	one      bool // the header names only handle
	mem      *memory
	msg      []byte
	next     int // Read to post, or what is left of it
	left     int // Reads that are posted and not completed
	deadline time.Time
}

// Message returns the message of the call, without a record mark.
func (k *Call) Message() []byte { return k.msg }

// receive returns the work request of the call's receive.
func (k *Call) receive() iwarp.RecvWR {
	return iwarp.RecvWR{ID: kindReceive<<32 | uint64(k.index), Local: k.into[:]}
}

var errDuplicate = errors.New("rpcrdma: a call with the XID of one that is not answered yet")

// message handles a message of the client. mu is held, as in the functions below.
func (c *Conn) message(k *Call, n int) {
	switch {
	case c.stage > serving:
		k.state = refused
		return
	case n < wire.MinLen: // its XID cannot be relied on (RFC 8166 section 4.5)
		c.again(k)
		return
	}
	at, err := k.hdr.Parse(k.recv[:n])
	switch {
	case k.hdr.Proc == wire.Failure, k.hdr.Proc == wire.Done && err == nil:
		// In no version is there an answer to a failure (RFC 8166 section 4.2.4, with erratum 6528).
		c.again(k) // no client should send it, and none gets an answer
	case err != nil:
		c.refuse(k)
	case c.inFlight(k.hdr.XID):
		c.fail(errDuplicate)
	default:
		k.body = k.recv[at:n]
		c.take(k)
	}
}

// inFlight reports whether a call of that XID has no reply yet.
func (c *Conn) inFlight(xid uint32) bool {
	for i := range c.calls {
		if k := &c.calls[i]; k.state != free && k.state != refused && k.hdr.XID == xid {
			return true
		}
	}
	return false
}

// take takes a call: at once if it came inline, otherwise after its memory is granted and its Reads are done.
func (c *Conn) take(k *Call) {
	if err := k.plan.Make(&k.hdr, k.body, c.cfg.MaxCall); err != nil {
		c.refuse(k)
		return
	}
	k.handle, k.one = k.hdr.OneHandle()
	if len(k.plan.Reads) == 0 {
		k.msg = k.body
		c.arrived(k)
		return
	}
	k.state = pulling
	c.wants = append(c.wants, k)
}

// granted begins the Reads of a call.
func (k *Call) granted(m *memory, err error) {
	c := k.c
	c.mu.Lock()
	defer c.unlock()
	if err != nil {
		c.fail(err)
		return
	}
	if c.stage > serving {
		k.state = refused
		c.spent = append(c.spent, m)
		return
	}
	k.mem, k.msg = m, m.b[:k.plan.Len]
	for _, p := range k.plan.Copies {
		copy(k.msg[p.At:p.At+p.Len], k.body[p.From:])
	}
	k.next, k.left = 0, 0
	k.deadline = time.Now().Add(patience)
	c.watch()
	c.pulls = append(c.pulls, k)
}

// pull posts the next Read of k, the first call that has one. A Read that is larger than the window of a Solicitor is posted as
// several.
func (c *Conn) pull(k *Call) {
	r := &k.plan.Reads[k.next]
	n := min(r.Len, c.most)
	c.readTo[0] = k.mem.mr.Slice(r.At, n)
	c.readWR[0] = iwarp.SendWR{
		ID: kindRead<<32 | uint64(k.index), Op: iwarp.OpRDMARead, Local: c.readTo[:],
		Remote: remote(r.Handle, r.Offset, n),
	}
	err := c.qp.PostSend(c.readWR[:]...)
	if errors.Is(err, iwarp.ErrLimit) && n > 1 {
		c.most = n / 2
		return
	}
	c.reading++
	c.free--
	k.left++
	r.At, r.Offset, r.Len = r.At+n, r.Offset+uint64(n), r.Len-n
	if r.Len == 0 {
		k.next++
	}
	if k.next == len(k.plan.Reads) {
		pop(&c.pulls)
	}
	c.endIf(err)
}

// pulled handles the end of a Read.
func (c *Conn) pulled(k *Call) {
	if k.left--; k.left > 0 || k.next < len(k.plan.Reads) {
		return
	}
	k.deadline = time.Time{}
	if err := k.plan.Finish(k.msg); err != nil {
		c.refuse(k)
		return
	}
	c.arrived(k)
}

// arrived hands a call over. It refuses a call whose XID differs from the XID of its header (RFC 8166 section 4.5.2), or that
// has an argument in a Read chunk that is not eligible (section 6.1).
func (c *Conn) arrived(k *Call) {
	err := k.rpc.Parse(k.msg)
	switch {
	case err != nil:
		c.fail(err)
		return
	case c.stage > serving:
		c.drop(k)
		return
	case k.rpc.XID != k.hdr.XID, !k.mayHaveChunks(c.cfg.Binding):
		c.refuse(k)
		return
	}
	k.state = waiting
	c.inHand++
	c.ready <- k
}

// mayHaveChunks reports whether each argument that came in a Read chunk of its own is eligible.
func (k *Call) mayHaveChunks(b Binding) bool {
	a, ok := b.(ArgumentBinding)
	return !ok || k.plan.Opaques(func(at int) bool {
		return a.Argument(k.rpc.Program, k.rpc.Version, k.rpc.Procedure, k.msg, at)
	})
}

// drop releases the memory of a call that will not be answered.
func (c *Conn) drop(k *Call) {
	c.forget(k)
	k.state = refused
}

// forget releases the memory of a call.
func (c *Conn) forget(k *Call) {
	if k.mem != nil {
		c.spent = append(c.spent, k.mem)
	}
	k.mem, k.msg, k.body = nil, nil, nil
}

// again posts the receive of a call again.
func (c *Conn) again(k *Call) {
	k.state = free
	c.recvWR[0] = k.receive()
	c.endIf(c.qp.PostRecv(c.recvWR[:]...))
}

// ReadCall returns the next call. The caller must answer it with Reply, even if the connection has ended meanwhile.
// The error is that of ctx, or matches net.ErrClosed if the connection has ended, or if all calls are answered
// after Shutdown.
func (c *Conn) ReadCall(ctx context.Context) (*Call, error) {
	k, err := c.next(ctx.Done())
	if errors.Is(err, errCanceled) {
		return nil, ctx.Err()
	}
	if k == nil {
		if errors.Is(err, io.EOF) {
			err = errClosed
		}
		return nil, err
	}
	c.mu.Lock()
	k.state = handed
	c.mu.Unlock()
	return k, nil
}

var errCanceled = errors.New("rpcrdma: canceled")

// next waits for a call. The error is io.EOF after a graceful end.
func (c *Conn) next(cancel <-chan struct{}) (*Call, error) {
	select {
	case <-c.lost:
		return nil, c.end(cancel)
	default:
	}
	select {
	case k := <-c.ready:
		return k, nil
	default:
	}
	select {
	case k := <-c.ready:
		return k, nil
	case <-c.drained:
		return nil, c.end(cancel)
	case <-c.lost:
		return nil, c.end(cancel)
	case <-cancel:
		return nil, errCanceled
	}
}

// end returns the reason why there are no more calls. If the connection is lost, it first waits for the end of the QP, or for cancel:
// then the reason is errCanceled.
func (c *Conn) end(cancel <-chan struct{}) error {
	if closed.Is(c.lost) && !ends(c.qp, cancel) {
		return errCanceled
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.qp.Err() == nil {
		return io.EOF
	}
	return c.lostBy()
}

// ends waits for the end of a QP, which has no error before. It reports false if it was canceled.
func ends(qp *iwarp.QP, cancel <-chan struct{}) bool {
	select {
	case <-qp.Done():
		return true
	case <-cancel:
		return closed.Is(qp.Done())
	}
}
