package rpcrdma

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A stage is a stage in the life of a connection. Stages only advance.
type stage uint8

const (
	serving  stage = iota
	draining       // no more calls are taken
	closing        // no more replies are taken, either
)

var errClosed = fmt.Errorf("rpcrdma: the connection is closed: %w", net.ErrClosed)

// A Conn is the connection of a client. Its methods may be called from any goroutine.
type Conn struct {
	// One goroutine, in run, takes the completions. mu is held while the state changes and work requests are posted,
	// which never waits. Memory is requested and released without mu: see unlock.

	*shared
	qp            *iwarp.QP
	cq            *iwarp.CQ
	home          *home
	local, remote net.Addr
	threshold     int  // octets of a message to the client
	invalidates   bool // the client takes Send with Invalidate
	ord           int
	onEnd         func(*Conn)

	callMemory, replyMemory account

	recvMR *iwarp.MR
	calls  []Call // one for each receive
	outMR  *iwarp.MR
	outs   []outgoing
	idle   chan *outgoing // the outs that are free
	ready  chan *Call

	drained chan struct{} // closed when no call is without a reply, and no more will come
	lost    chan struct{} // closed in stage closing
	flushed chan struct{} // closed when, in stage closing, no reply is left to be sent
	done    chan struct{} // closed when the QP has ended and everything was released
	tasks   sync.WaitGroup

	mu       sync.Mutex
	stage    stage
	err      error       // why this side has ended the connection; nil: it has not
	free     int         // work requests that the send queue has room for
	posts    []*outgoing // to be posted, in order
	pulls    []*Call     // whose Reads are to be posted
	reading  int         // Reads that are posted
	came     progress    // of the Reads
	left     progress    // of the replies
	most     int         // octets of one Read
	owed     []*Call     // whose failure waits for an outgoing
	wants    []*Call     // that need memory: see unlock
	spent    []*memory   // to be released: see unlock
	inHand   int         // calls that are ready, or handed over
	timer    *time.Timer
	armed    bool
	expected time.Time // when the timer is to fire, if it is armed
	readWR   [1]iwarp.SendWR
	readTo   [1]iwarp.SGE
	recvWR   [1]iwarp.RecvWR
}

// newConn makes everything except the QP.
func newConn(s *shared, cr *iwarp.ConnRequest) (*Conn, error) {
	peer := wire.ParsePrivate(cr.PrivateData())
	cfg := &s.cfg
	c := &Conn{
		shared: s, threshold: min(cfg.Inline, peer.Receive), invalidates: peer.Invalidate,
		calls: make([]Call, cfg.receives()), outs: make([]outgoing, cfg.Credits),
		idle: make(chan *outgoing, cfg.Credits), ready: make(chan *Call, cfg.receives()),
		drained: make(chan struct{}), lost: make(chan struct{}), flushed: make(chan struct{}), done: make(chan struct{}),
		free: cfg.sendDepth(), most: cfg.MaxCall,
	}
	pd, err := cfg.RNIC.AllocPD()
	if err != nil {
		return nil, err
	}
	c.home = &home{pd: pd}
	c.home.uses.Add(1)
	c.callMemory, c.replyMemory = account{p: s.calls, home: c.home}, account{p: s.replies, home: c.home}
	if err := c.makeMemory(); err != nil {
		c.release()
		return nil, err
	}
	c.timer = time.AfterFunc(time.Hour, c.rings)
	c.timer.Stop()
	return c, nil
}

// makeMemory makes the CQ, and the memory of the messages that are inline.
func (c *Conn) makeMemory() (err error) {
	n := c.cfg.Inline
	if c.cq, err = c.cfg.RNIC.CreateCQ(c.cfg.sendDepth() + c.cfg.receives()); err != nil {
		return err
	}
	slab := make([]byte, n*len(c.calls))
	if c.recvMR, err = c.home.pd.RegisterMR(slab, stag.LocalWrite, nil); err != nil {
		return err
	}
	for i := range c.calls {
		k := &c.calls[i]
		k.c, k.index, k.recv = c, i, slab[i*n:(i+1)*n:(i+1)*n]
		k.into[0] = c.recvMR.Slice(i*n, n)
	}
	slab = make([]byte, 2*n*len(c.outs))
	if c.outMR, err = c.home.pd.RegisterMR(slab, 0, nil); err != nil {
		return err
	}
	for i := range c.outs {
		o := &c.outs[i]
		o.c, o.index, o.buf, o.grants = c, i, slab[2*i*n:2*(i+1)*n:2*(i+1)*n], make(chan grant, 1)
		c.idle <- o
	}
	return nil
}

// release releases everything. The QP has ended, or was never made.
func (c *Conn) release() {
	c.callMemory.close()
	c.replyMemory.close()
	for _, mr := range []*iwarp.MR{c.recvMR, c.outMR} {
		if mr != nil {
			_ = mr.Close()
		}
	}
	if c.cq != nil {
		_ = c.cq.Close()
	}
	c.home.leave()
}

// reach enters a stage. It reports false if the connection had already reached that stage. mu is held.
func (c *Conn) reach(s stage) bool {
	if c.stage >= s {
		return false
	}
	if s == closing {
		close(c.lost)
	}
	c.stage = s
	c.settle()
	return true
}

// settle checks whether the connection is drained, and whether all replies are sent. mu is held.
func (c *Conn) settle() {
	if c.stage == closing && !c.sending() && !closed.Is(c.flushed) {
		close(c.flushed)
	}
	if c.stage > serving && c.inHand+len(c.posts)+len(c.owed) == 0 && !closed.Is(c.drained) {
		close(c.drained)
	}
}

// sending reports whether a reply has not been sent yet. mu is held.
func (c *Conn) sending() bool {
	for i := range c.outs {
		if c.outs[i].queued {
			return true
		}
	}
	return false
}

// fail ends the connection because of an error that this side has found. mu is held.
func (c *Conn) fail(err error) {
	if !c.reach(closing) {
		return
	}
	c.err = err
	c.tasks.Go(func() {
		if c.qp.Terminate() != nil {
			_ = c.qp.Abort()
		}
	})
}

// lostBy returns the reason why the connection has ended, as an error that matches net.ErrClosed. mu is held.
func (c *Conn) lostBy() error {
	if c.err != nil {
		return fmt.Errorf("%w: %w", errClosed, c.err)
	}
	if err := c.qp.Err(); err != nil {
		return fmt.Errorf("rpcrdma: %w", err)
	}
	return errClosed
}

// Err returns the error that ended the connection. It is nil while the connection lasts, and after a graceful end.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.qp.Err()
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the client.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// QP returns the QP of the connection, for its statistics, its addresses and the identity of its peer. The program must not
// post work to it.
func (c *Conn) QP() *iwarp.QP { return c.qp }

// Done returns a channel that is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

var errTimeout = errors.New("rpcrdma: the client has let an RDMA Read or a reply wait for too long")

// watch arms the timer if it is not armed. mu is held, as in due.
func (c *Conn) watch() {
	if !c.armed && c.stage < closing {
		c.arm(shortPatience)
	}
}

// arm makes the timer fire after d.
func (c *Conn) arm(d time.Duration) {
	c.armed, c.expected = true, time.Now().Add(d)
	c.timer.Reset(d)
}

// mostLate is how late the timer may fire in a process that was not stopped.
const mostLate = time.Second

// stopped moves all deadlines by the time for which this process was stopped: what clients sent meanwhile is still to be read.
func (c *Conn) stopped(late time.Duration) {
	if late <= mostLate {
		return
	}
	for i := range c.calls {
		if d := &c.calls[i].deadline; !d.IsZero() {
			*d = d.Add(late)
		}
	}
	for i := range c.outs {
		if d := &c.outs[i].deadline; !d.IsZero() {
			*d = d.Add(late)
		}
	}
}

// rings is called when the timer fires. It ends the connection if a Read or a reply has waited for too long.
func (c *Conn) rings() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	if c.stage == closing {
		return
	}
	c.stopped(time.Since(c.expected))
	stats := c.qp.Stats()
	c.came.look(stats.Received.ReadResponse.Octets)
	c.left.look(stats.Sent.RDMAWrite.Octets + stats.Sent.Send.Octets)
	due := c.due()
	switch wait := time.Until(due); {
	case due.IsZero():
	case wait <= 0:
		c.fail(errTimeout)
	default:
		c.arm(min(wait, shortPatience)) // others may begin to wait for the memory
	}
}

// due returns when the connection ends if the client does not answer the Reads and take the replies; zero: none waits for it.
func (c *Conn) due() time.Time {
	var reads, replies time.Time
	for i := range c.calls {
		reads = earlier(reads, c.calls[i].deadline)
	}
	for i := range c.outs {
		replies = earlier(replies, c.outs[i].deadline)
	}
	if c.callMemory.obstructs() {
		reads = c.came.shorten(reads)
	}
	if c.replyMemory.obstructs() {
		replies = c.left.shorten(replies)
	}
	return earlier(reads, replies)
}
