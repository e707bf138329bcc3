package rpcrdma

import (
	"context"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A Client calls the programs of one server, over one connection. Its methods may be called from any goroutine.
//
// When the connection has ended, all calls fail. Whether the server has executed a call without a reply is not
// known. A program that repeats such a call on a new Client keeps its XID, by which the server may recognise it.
type Client struct {
	qp *iwarp.QP
	cq *iwarp.CQ
	pd *iwarp.PD

	toServer, toClient int // octets of a message, at most
	inline             int // octets of a receive, and of a slot's message
	sendMR, recvMR     *iwarp.MR
	received           []byte // of recvMR
	slots              []slot

	lost  chan struct{}  // closed in stage closing
	done  chan struct{}  // closed when the QP has ended and everything was released
	doing sync.WaitGroup // calls of Do that use the connection
	tasks sync.WaitGroup

	mu      sync.Mutex
	stage   stage
	err     error            // why this side has ended the connection; nil: it has not
	grant   int              // how many calls may be outstanding
	calls   int              // how many calls are outstanding
	idle    []*slot          // slots that no call uses
	turns   []*turn          // calls that wait for a slot, in order
	pending map[uint32]*slot // by XID, slots of calls without a reply
	recvWR  [1]iwarp.RecvWR
	recvTo  [1]iwarp.SGE
}

// Dial connects to a server, such as an NFS server at port 20049. Until the first reply has come, only one call is sent (RFC
// 8166 section 3.3.3).
func Dial(ctx context.Context, rnic *iwarp.RNIC, network, addr string, cfg *ClientConfig) (*Client, error) {
	d, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := newClient(rnic, &d)
	if err != nil {
		return nil, err
	}
	q := d.QP
	q.PD, q.SendCQ, q.RecvCQ = c.pd, c.cq, c.cq
	q.SendDepth, q.RecvDepth = len(c.slots), c.receives()
	q.PrivateData = wire.Private{Send: c.inline, Receive: c.inline}.Append(nil)
	q.Setup = c.setUp
	if c.qp, err = rnic.Dial(ctx, network, addr, &q); err != nil {
		c.release()
		return nil, fmt.Errorf("rpcrdma: %w", err)
	}
	peer := wire.ParsePrivate(c.qp.PrivateData())
	c.toServer, c.toClient = min(c.inline, peer.Receive), min(c.inline, peer.Send)
	go c.serve()
	return c, nil
}

// receives returns how many receives are posted for messages of the server.
func (c *Client) receives() int { return len(c.slots) + spareReceives }

// newClient makes everything except the QP.
func newClient(rnic *iwarp.RNIC, cfg *ClientConfig) (*Client, error) {
	c := &Client{
		inline: cfg.Inline, slots: make([]slot, cfg.Credits), grant: 1, pending: make(map[uint32]*slot, cfg.Credits),
		lost: make(chan struct{}), done: make(chan struct{}),
	}
	var err error
	if c.pd, err = rnic.AllocPD(); err != nil {
		return nil, err
	}
	if err := c.makeMemory(rnic); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

func (c *Client) makeMemory(rnic *iwarp.RNIC) (err error) {
	n := c.inline
	if c.cq, err = rnic.CreateCQ(len(c.slots) + c.receives()); err != nil {
		return err
	}
	c.received = make([]byte, n*c.receives())
	if c.recvMR, err = c.pd.RegisterMR(c.received, stag.LocalWrite, nil); err != nil {
		return err
	}
	slab := make([]byte, n*len(c.slots))
	if c.sendMR, err = c.pd.RegisterMR(slab, 0, nil); err != nil {
		return err
	}
	for i := range c.slots {
		s := &c.slots[i]
		s.c, s.index, s.buf, s.answers = c, i, slab[i*n:i*n:(i+1)*n], make(chan answer, 1)
		c.idle = append(c.idle, s)
	}
	return nil
}

// setUp posts the receives.
func (c *Client) setUp(_ context.Context, qp *iwarp.QP) error {
	for i := range c.receives() {
		if err := qp.PostRecv(c.receive(i)); err != nil {
			return err
		}
	}
	return nil
}

// receive returns the work request of a receive. mu is held, or no other goroutine exists yet.
func (c *Client) receive(i int) iwarp.RecvWR {
	c.recvTo[0] = c.recvMR.Slice(i*c.inline, c.inline)
	return iwarp.RecvWR{ID: kindReceive<<32 | uint64(i), Local: c.recvTo[:]}
}

// release releases everything. The QP has ended, or was never made.
func (c *Client) release() {
	for _, mr := range []*iwarp.MR{c.recvMR, c.sendMR} {
		if mr != nil {
			_ = mr.Close()
		}
	}
	if c.cq != nil {
		_ = c.cq.Close()
	}
	_ = c.pd.Close()
}

// Close ends the connection. Calls without a reply fail. It waits for the server to end its half, for at most the
// CloseTimeout of the RNIC.
func (c *Client) Close() error {
	c.mu.Lock()
	c.close()
	c.mu.Unlock()
	err := c.qp.Close()
	<-c.done
	return err
}

// close enters stage closing. It reports false if the connection was in that stage already. mu is held, as in fail.
func (c *Client) close() bool {
	if c.stage == closing {
		return false
	}
	c.stage = closing
	close(c.lost)
	return true
}

// fail ends the connection because of an error that this side has found.
func (c *Client) fail(err error) {
	if !c.close() {
		return
	}
	c.err = err
	c.tasks.Go(func() {
		if c.qp.Terminate() != nil {
			_ = c.qp.Abort()
		}
	})
}

// Err returns the error that ended the connection. It is nil while the connection lasts, and after a graceful end.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.qp.Err()
}

// ended returns the reason why the connection has ended, as an error that matches net.ErrClosed, or the error of ctx if ctx ends
// first. The connection is in stage closing.
func (c *Client) ended(ctx context.Context) error {
	if !ends(c.qp, ctx.Done()) {
		return ctx.Err()
	}
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	return errClosed
}

// QP returns the QP of the connection, for its statistics, its addresses and the identity of its peer. The program must not
// post work to it.
func (c *Client) QP() *iwarp.QP { return c.qp }

// Done returns a channel that is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }
