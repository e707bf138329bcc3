package rma

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

// run handles completions until the connection has ended and nothing of its operations is left.
func (c *conn) run() {
	defer close(c.done)
	for goes := c.begins(); goes; {
		goes = c.receive()
	}
	c.endQP()
	c.enter()
	c.lose()
	for !c.idle() {
		c.leave()
		<-c.again
		c.enter()
		c.withdrawn(c.takeRevokes())
	}
	c.leave()
	c.releaseAll()
}

// begins reports whether there is a QP to serve.
func (c *conn) begins() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage < failing
}

// receive waits for completions or a Signal, and does the work that is due. It reports false when the QP is
// ending, or must end.
func (c *conn) receive() bool {
	n, err := c.cq.Wait(context.Background(), c.wcs[:])
	c.enter()
	if err != nil {
		c.reach(broken)
	}
	c.take(n)
	for c.stage < failing && len(c.revokes) > 0 {
		revokes := c.takeRevokes()
		c.leave()
		c.invalidate(revokes)
		c.enter()
		c.drain()
		c.withdrawn(revokes)
	}
	goes := c.stage < failing
	c.leave()
	return goes
}

// take handles n completions and those that follow, until the work that they cause amounts to so many octets
// that it is better to do it first: then its memory can be used again while it is in the caches. The number of
// completions is bounded, so that a peer that keeps sending does not lock out other goroutines. mu is held.
func (c *conn) take(n int) {
	for all := n; n > 0; all += n {
		for i := range c.wcs[:n] {
			c.completed(&c.wcs[i])
		}
		if c.owed >= outboxOctets || all >= outboxWRs {
			return
		}
		n = c.poll()
	}
}

// drain handles all completions that the CQ holds now, and perhaps some that arrive meanwhile. mu is held.
func (c *conn) drain() {
	left := c.cq.Stats().Waiting
	for n := 1; left > 0 && n > 0; left -= n {
		n = c.poll()
		for i := range c.wcs[:n] {
			c.completed(&c.wcs[i])
		}
	}
}

// poll moves completions to wcs, and reads the clock if there are any: they may have arrived after the time of the event,
// and the time that a PULL allows counts from its arrival. mu is held.
func (c *conn) poll() int {
	n := c.cq.Poll(c.wcs[:])
	if n > 0 {
		c.now = time.Now()
	}
	return n
}

// completed handles a completion. mu is held.
func (c *conn) completed(wc *iwarp.WC) {
	switch {
	case wc.Status != iwarp.StatusSuccess:
		c.reach(broken)
	case wc.Op == iwarp.OpRecv || wc.Op == iwarp.OpRecvImm:
		c.message(wc)
	case wc.ID>>idKind == kindBlob:
		c.blobs.sent(c.now, int(uint32(wc.ID)))
	case wc.ID>>idKind == kindPull:
		c.serverDo = c.asServer.Pulled(c.serverDo, c.now, c.requests[uint32(wc.ID)].id, true)
		c.perform()
	}
}

// tick lets timers run out. mu is held.
func (c *conn) tick() {
	if why := c.hello.Tick(c.now); why != 0 {
		c.endFor(why)
	}
	if c.asClient != nil {
		c.clientDo = c.asClient.Tick(c.clientDo, c.now)
		c.serverDo = c.asServer.Tick(c.serverDo, c.now)
		c.perform()
	}
	c.lookAtStalled()
	switch due, ok := c.unsent(); {
	case !ok || c.now.Before(due):
	case c.cq.Stats().Waiting > 0: // run is in a method of a Buffer, and has not yet seen that blobs were sent
		c.blobs.moved = c.now
	default:
		c.end(errNotTaken)
	}
}

// errNotTaken is the error of a connection that could not send for longer than any operation of the peer may wait.
var errNotTaken = fmt.Errorf("%w: the peer does not read", ErrTimeout)

// unsent returns when the connection ends if the peer reads nothing: unsent data occupy memory that others need. mu is held.
func (c *conn) unsent() (due time.Time, ok bool) {
	if c.stage >= failing || c.asClient == nil {
		return time.Time{}, false
	}
	return c.blobs.deadline()
}

// A revoking is an STag that is to become invalid.
type revoking struct {
	role  op.Role
	id    op.ID
	lease *lease    // nil: the source is the peer's, and only the completions so far are to be handled
	until time.Time // if stalled: when the connection ends if the peer has read nothing
}

// revoke leaves the invalidation of an STag to run, unless it is a sink that must stay valid for now. mu is held.
func (c *conn) revoke(role op.Role, a *op.Action) {
	r := revoking{role: role, id: a.Op, lease: c.leaseOf(role, a)}
	if r.lease != nil && r.lease.mem != nil && !c.looked(r.lease) {
		c.stall(r)
	} else {
		c.withdraw(r)
	}
}

// withdraw leaves the invalidation of an STag to run. mu is held.
func (c *conn) withdraw(r revoking) {
	c.revokes = append(c.revokes, r)
	if c.stage == gone {
		c.lookAgain()
	} else {
		c.cq.Signal() // not a work request, which would wait behind the data that a slow peer has not read
	}
}

func (c *conn) takeRevokes() []revoking {
	all := c.revokes
	c.revokes = nil
	return all
}

// invalidate makes STags invalid. The peer may have done so already. mu is not held, since a
// placement may be in progress.
func (c *conn) invalidate(all []revoking) {
	for _, r := range all {
		if r.lease != nil {
			_ = r.lease.mr.Invalidate(context.Background())
		}
	}
}

// withdrawn tells the machines that STags are invalid, and that all messages that came before were
// handled. mu is held.
func (c *conn) withdrawn(all []revoking) {
	for _, r := range all {
		if r.role == op.ClientRole {
			c.clientDo = c.asClient.Revoked(c.clientDo, c.now, r.id)
		} else {
			c.serverDo = c.asServer.Revoked(c.serverDo, c.now, r.id)
		}
	}
	c.perform()
}

// endQP ends the QP, if this side has found an error, and waits until the QP has ended.
func (c *conn) endQP() {
	c.mu.Lock()
	own := c.stage == failing
	c.reach(broken)
	c.mu.Unlock()
	if own && c.qp.Terminate() != nil {
		_ = c.qp.Abort()
	}
	<-c.qp.Done()
}

// lose tells the machines that the connection is gone. mu is held.
func (c *conn) lose() {
	c.drain()
	c.reach(gone)
	if c.asClient == nil {
		return
	}
	c.clientDo = c.asClient.Lost(c.clientDo, c.now)
	c.serverDo = c.asServer.Lost(c.serverDo, c.now)
	c.perform()
	c.revokes, c.stalled = append(c.revokes, c.stalled...), nil
	c.withdrawn(c.takeRevokes())
}

// idle reports whether nothing of the operations is left. mu is held.
func (c *conn) idle() bool {
	return c.asClient == nil || c.asClient.Idle() && c.asServer.Idle() && len(c.work) == 0
}

// releaseAll releases all resources of the connection.
func (c *conn) releaseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.receives.close()
	if c.leases != nil {
		c.leases.close((*iwarp.MR).Close)
		c.blobs.close()
	}
	if c.server != nil {
		var stats op.ServerStats
		if c.asServer != nil {
			stats = c.asServer.Stats()
		}
		c.server.leave(c, stats)
	}
	c.secret.Wipe()
	_ = c.cq.Close() // a CQ that the QP created is closed already
}

// shutDown ends the connection. Requests that have been sent, by either side, go on until their outcome is known.
func (c *conn) shutDown() {
	c.enter()
	if c.reach(closing) {
		if c.asClient != nil {
			c.clientDo = c.asClient.Close(c.clientDo, c.now)
			c.serverDo = c.asServer.Close(c.serverDo, c.now)
		}
	}
	c.leaveToRun()
	select {
	case <-c.drained:
	case <-c.done:
	}
	_ = c.qp.Close() // Err tells how it has ended
	<-c.done
}

// lookDrained tells shutDown when neither side waits for an outcome any more. The last answers have been posted. mu is held.
func (c *conn) lookDrained() {
	if c.stage != closing || c.busy > 0 || c.asServer != nil && !c.asServer.Answered() {
		return
	}
	if !closed.Is(c.drained) {
		close(c.drained)
	}
}

// abort ends the connection at once.
func (c *conn) abort() {
	_ = c.qp.Abort()
	<-c.done
}

// serve is Server.Serve.
func (c *conn) serve(ctx context.Context) error {
	c.start()
	select {
	case <-ctx.Done():
		c.shutDown()
	case <-c.done:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.qp.Err()
}
