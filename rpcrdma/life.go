package rpcrdma

import "context"

// Close ends the connection. Replies that were passed to Reply are sent, unless the client lets them wait for a minute. Calls without
// a reply are not answered: see Shutdown. Close waits for the client to end its half, for at most the CloseTimeout of the RNIC.
func (c *Conn) Close() error { return c.close(context.Background()) }

// close is like Close, but ctx also bounds the time until all replies are sent.
func (c *Conn) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.mu.Lock()
	c.reach(closing)
	c.mu.Unlock()
	select {
	case <-c.flushed:
	case <-c.qp.Done():
	case <-ctx.Done():
	}
	err := c.qp.Close()
	<-c.done
	return err
}

// Shutdown ends the connection when all calls that were handed over, or are ready for ReadCall, are answered. No other calls are
// taken meanwhile: the client repeats them on its next connection. If ctx ends first, the calls are not answered, and the error
// is that of ctx. If the connection ends first, Shutdown does not wait for answers.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	c.reach(draining)
	c.mu.Unlock()
	var err error
	select {
	case <-c.drained:
	case <-c.lost:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if closed := c.close(ctx); err == nil {
		err = closed
	}
	return err
}

// abort ends the connection at once.
func (c *Conn) abort() {
	_ = c.qp.Abort()
	<-c.done
}

// reclaim releases the memory of calls and replies that no user of the package will end. The connection has ended.
func (c *Conn) reclaim() {
	c.mu.Lock()
	for i := range c.calls {
		if k := &c.calls[i]; k.state == pulling {
			c.drop(k)
		}
	}
	c.posts = nil
	for i := range c.outs {
		if o := &c.outs[i]; o.queued {
			c.finished(o)
		}
	}
	c.unlock()
	for {
		select {
		case k := <-c.ready:
			c.giveUp(k)
		default:
			return
		}
	}
}
