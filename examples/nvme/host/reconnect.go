package host

import (
	"context"
	"fmt"
	"time"
)

// run replaces the association when it has failed, until the controller is closed or given up.
func (c *Controller) run(a *assoc) {
	defer close(c.done)
	for a != nil {
		select {
		case <-a.down:
			a = c.replace(a)
		case reply := <-c.resets:
			a = c.reset(a, reply)
		case <-c.ctx.Done():
			return
		}
	}
}

// replace makes a new association for one that has failed, nil if there is to be none.
func (c *Controller) replace(old *assoc) *assoc {
	cause := old.cause()
	c.set(nil, nil)
	c.emit(Event{Kind: EventDisconnected, Err: cause})
	old.close(false)
	return c.retry(cause)
}

// retry connects again, at intervals, until Options.CtrlLoss is over.
func (c *Controller) retry(cause error) *assoc {
	for deadline := time.Now().Add(c.o.CtrlLoss); time.Now().Before(deadline); {
		if c.pause() != nil {
			return nil
		}
		a, err := c.again()
		switch {
		case err == nil:
			return a
		case c.ctx.Err() != nil:
			return nil
		}
		cause = err
		c.emit(Event{Kind: EventConnectFailed, Err: err})
		if final(err) {
			break
		}
	}
	return c.giveUp(cause)
}

// pause waits between two attempts to connect. A Reset of the program ends it.
func (c *Controller) pause() error {
	t := time.NewTimer(c.o.ReconnectDelay)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return nil
		case reply := <-c.resets:
			reply <- nil
			return nil
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

// again connects once, and publishes the association.
func (c *Controller) again() (*assoc, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.o.AdminTimeout)
	defer cancel()
	a, err := c.establish(ctx)
	if err != nil {
		return nil, err
	}
	c.set(a, nil)
	c.serve(a)
	c.emit(Event{Kind: EventReconnected})
	return a, nil
}

// giveUp makes the error final.
func (c *Controller) giveUp(cause error) *assoc {
	err := fmt.Errorf("nvme: the controller is given up: %w", &LostError{Cause: cause})
	c.set(nil, err)
	c.emit(Event{Kind: EventGivenUp, Err: err})
	return nil
}

// Reset disables the controller of the target, ends all connections, and connects again, to a new
// controller. Outstanding commands are sent again, as after a lost connection. If the attempt to
// connect fails, Reset returns that error, and further attempts follow. Without a connection, Reset makes
// the next attempt begin at once, and does not wait for it.
func (c *Controller) Reset(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case c.resets <- reply:
	case <-c.done:
		return c.finalError()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Controller) finalError() error {
	if err := c.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// reset performs Reset. The I/O queues end first: a target ends them when it is disabled, which would be taken for a loss of all
// connections, and the host has to wait until the target is done with the commands that are sent again.
func (c *Controller) reset(a *assoc, reply chan<- error) *assoc {
	c.set(nil, nil)
	c.emit(Event{Kind: EventDisconnected, Err: ErrReset})
	a.closeIO(ErrReset, false)
	ctx, cancel := context.WithTimeout(c.ctx, c.o.AdminTimeout)
	err := a.disable(ctx)
	cancel()
	a.fail(ErrReset)
	a.close(err == nil)
	next, err := c.again()
	reply <- err
	switch {
	case err == nil:
		return next
	case c.ctx.Err() != nil:
		return nil
	}
	c.emit(Event{Kind: EventConnectFailed, Err: err})
	if final(err) {
		return c.giveUp(err)
	}
	return c.retry(err)
}
