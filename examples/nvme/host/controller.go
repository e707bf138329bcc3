package host

import (
	"context"
	"errors"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A Controller is a host's view of a subsystem: an association with a controller of the target,
// which is replaced when it is lost. Its methods may be called by any goroutine.
type Controller struct {
	addr, subnqn string
	o            *Options
	rnic         *iwarp.RNIC
	ownRNIC      bool
	events       chan Event

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	resets chan chan error
	done   chan struct{} // the goroutine that connects again has ended

	closing sync.Once
	looking chan struct{} // of one element: a namespace is being described
	refused chan struct{} // of one element: the target has refused to describe a namespace

	mu           sync.Mutex
	assoc        *assoc // nil: there is none now
	changedState chan struct{}
	err          error // final
	eventsClosed bool
	namespaces   map[uint32]*Namespace
}

// Connect connects to the subsystem subnqn at addr, an address for RNIC.Dial on the network: it must
// include a port, usually 4420. ctx bounds only the set-up.
//
// If the target refuses a connection, the error is a [capsule.RejectError], and if it refuses a queue,
// a [*capsule.ConnectError]. If this host cannot work with the controller, the error matches
// [capsule.ErrMalformed].
func Connect(ctx context.Context, addr, subnqn string, o *Options) (*Controller, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := capsule.CheckNQN(subnqn); err != nil {
		return nil, err
	}
	c := &Controller{
		addr: addr, subnqn: subnqn, o: o, rnic: o.RNIC, events: make(chan Event, maxEvents),
		resets: make(chan chan error), done: make(chan struct{}), changedState: make(chan struct{}),
		looking: make(chan struct{}, 1), refused: make(chan struct{}, 1), namespaces: make(map[uint32]*Namespace),
	}
	if c.rnic == nil {
		if c.rnic, err = iwarp.Open(nil); err != nil {
			return nil, err
		}
		c.ownRNIC = true
	}
	a, err := c.establish(ctx)
	if err != nil {
		_ = c.closeRNIC()
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.assoc = a
	c.serve(a)
	go c.run(a)
	return c, nil
}

// establish makes an association with everything that I/O needs.
func (c *Controller) establish(ctx context.Context) (*assoc, error) {
	a, err := newAssoc(ctx, c.rnic, c.addr, c.subnqn, c.o)
	if err != nil {
		return nil, err
	}
	if err := c.complete(ctx, a); err != nil {
		return nil, a.discard(err)
	}
	return a, nil
}

func (c *Controller) complete(ctx context.Context, a *assoc) error {
	if a.id.CNTRLTYPE == capsule.ControllerDiscovery {
		return malformed("%q is a discovery subsystem", c.subnqn)
	}
	if c.o.KATO > 0 { // the target waits no longer than KATO for the next command
		a.workers.Go(a.keepAlive)
	}
	for _, step := range []func(context.Context) error{a.identifyNVM, a.openIO, a.enableEvents} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return c.refresh(ctx, a, nil, true)
}

// serve handles the events of an association that the controller already uses, and asks again for refused namespaces. While the
// controller is being reset, the target ends the request for an event.
func (c *Controller) serve(a *assoc) {
	if a.noEvents != nil {
		c.emit(Event{Kind: EventAsync, Err: a.noEvents})
	}
	a.workers.Go(func() { c.revive(a) })
	a.workers.Go(func() {
		err := a.watch(c.ctx, func(ctx context.Context, e capsule.AsyncEvent) { c.handleEvent(ctx, a, e) })
		if err != nil && c.has(a) {
			c.emit(Event{Kind: EventAsync, Err: err})
		}
	})
}

// has reports whether commands use the association a.
func (c *Controller) has(a *assoc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.assoc == a
}

// Events returns the channel of events. It holds 64 events; further events are dropped. Close closes
// the channel.
func (c *Controller) Events() <-chan Event { return c.events }

// Err returns nil while the controller is connected or tries to connect, and afterwards why it no longer does.
func (c *Controller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Queues returns how many I/O queues there are now, and how many commands each may have outstanding:
// 0 while there is no connection.
func (c *Controller) Queues() (queues, commands int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.assoc == nil {
		return 0, 0
	}
	return len(c.assoc.io), cap(c.assoc.io[0].free)
}

// current returns the association. It waits while there is none.
func (c *Controller) current(ctx context.Context) (*assoc, error) {
	for {
		c.mu.Lock()
		a, err, changed := c.assoc, c.err, c.changedState
		c.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case a != nil && !a.failed():
			return a, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// set publishes a state: an association, none for the time being, or none permanently.
func (c *Controller) set(a *assoc, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.assoc = a
	if err != nil {
		c.err = err
	}
	close(c.changedState)
	c.changedState = make(chan struct{})
}

// Close ends the controller: first the I/O queues, and then, after the target has reported that everything
// is durable, the admin queue. Outstanding commands fail with ErrClosed, and so do all later calls. The
// error is that of the shutdown; the connections are closed in any case. Further calls of Close do nothing.
func (c *Controller) Close() (err error) {
	c.closing.Do(func() {
		c.cancel()
		<-c.done
		err = c.closeAssoc()
		c.mu.Lock()
		c.eventsClosed = true
		close(c.events)
		c.mu.Unlock()
		err = errors.Join(err, c.closeRNIC())
	})
	return err
}

// closeAssoc ends the association gracefully, if there is one.
func (c *Controller) closeAssoc() error {
	c.mu.Lock()
	a := c.assoc
	c.mu.Unlock()
	c.set(nil, ErrClosed)
	if a == nil {
		return nil
	}
	a.closeIO(ErrClosed, true)
	err := a.shutdown(context.Background())
	a.fail(ErrClosed)
	a.close(err == nil)
	return err
}

func (c *Controller) closeRNIC() error {
	if !c.ownRNIC {
		return nil
	}
	return c.rnic.Close()
}
