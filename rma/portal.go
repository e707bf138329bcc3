package rma

import (
	"context"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
)

// A Portal has a fixed number of slots, each for one operation at a time. Operations end in any order.
type Portal struct {
	client *Client
	size   int

	mu     sync.Mutex // a leaf
	free   []Slot
	ends   []Completion // a ring of those not yet polled
	first  int
	count  int
	closed bool
	ready  chan struct{} // has a token if there may be completions
}

// Portal makes a Portal with 1 to 4,096 slots, which are taken from ClientConfig.MaxSlots and from the
// budget in ClientConfig.Slots. If too few are left, the error is ErrNoSlot. The error of a closed Client
// matches net.ErrClosed.
func (cl *Client) Portal(slots int) (*Portal, error) {
	if slots < 1 || slots > maxSlots {
		return nil, fmt.Errorf("rma: a Portal with %d slots, 1 to %d are possible", slots, maxSlots)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.portals == nil {
		return nil, cl.c.closedBy()
	}
	if slots > cl.left || !cl.cfg.Slots.take(slots) {
		return nil, ErrNoSlot
	}
	cl.left -= slots
	p := &Portal{client: cl, size: slots, ends: make([]Completion, slots), ready: make(chan struct{}, 1)}
	for i := slots; i > 0; i-- {
		p.free = append(p.free, Slot(i-1))
	}
	cl.portals[p] = struct{}{}
	return p, nil
}

// Close returns the slots to the Client and the budget. It fails while operations use them.
func (p *Portal) Close() error {
	p.mu.Lock()
	used := p.size - len(p.free)
	was := p.closed
	p.closed = used == 0
	p.mu.Unlock()
	switch {
	case used > 0:
		return fmt.Errorf("rma: %d slots of the Portal are in use", used)
	case was:
		return nil
	}
	cl := p.client
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if _, there := cl.portals[p]; there {
		delete(cl.portals, p)
		cl.left += p.size
		cl.cfg.Slots.give(p.size)
	}
	return nil
}

// Client returns the Client that made the Portal.
func (p *Portal) Client() *Client { return p.client }

// Post begins an operation. It never waits. The slot stays in use until its completion has been polled.
// If no slot is free, the error is ErrNoSlot. After an error there is no completion, and cmd.Buf belongs
// to the caller. The error matches net.ErrClosed when the connection is ending.
func (p *Portal) Post(cmd Command) (Slot, error) {
	slot, err := p.take()
	if err != nil {
		return 0, err
	}
	err = p.begin(&cmd, p, slot)
	p.client.c.send()
	if err != nil {
		p.give(slot)
		return 0, err
	}
	return slot, nil
}

// PostAll posts all of cmds, in order, and sends their requests together, which takes less time than
// calls of Post. It stores the slots of the operations in slots, which is nil or at least as long as cmds.
// It returns how many operations it began before the first error, and that error.
func (p *Portal) PostAll(cmds []Command, slots []Slot) (int, error) {
	if slots != nil && len(slots) < len(cmds) {
		return 0, fmt.Errorf("rma: PostAll of %d commands with room for %d slots", len(cmds), len(slots))
	}
	defer p.client.c.send()
	for i := range cmds {
		slot, err := p.take()
		if err != nil {
			return i, err
		}
		if err := p.begin(&cmds[i], p, slot); err != nil {
			p.give(slot)
			return i, err
		}
		if slots != nil {
			slots[i] = slot
		}
	}
	return len(cmds), nil
}

// begin begins an operation and reports its end to the completer. The caller sends the request.
func (p *Portal) begin(cmd *Command, to completer, slot Slot) error {
	c, k, err := p.check(cmd)
	if err != nil {
		return err
	}
	k.to, k.slot = to, slot
	return p.client.c.begin(c, &k)
}

// load returns how many slots are in use, whether one is free, and whether the Portal is closed.
func (p *Portal) load() (used int, free, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - len(p.free), len(p.free) > 0 && !p.closed, p.closed
}

// check checks a Command and turns it into an operation.
func (p *Portal) check(cmd *Command) (o op.Command, k call, err error) {
	c := p.client.c
	h := cmd.Handle
	if h == nil || h.client != p.client {
		return o, k, errNotOpen
	}
	now := h.keys.Load()
	o = op.Command{Class: op.Class(cmd.Class), Length: uint32(len(cmd.Buf)), Timeout: cmd.Timeout}
	need := MayRead
	switch cmd.Op {
	case Read:
		o.Kind = op.Read
		o.Direct = cmd.Direct && c.suite == wire.Suite0 && len(cmd.Buf) > 0
	case Write:
		o.Kind, need = op.Write, MayWrite
		o.Source = c.suite == wire.Suite0 && len(cmd.Buf) > 0
	default:
		return o, k, errUnknown
	}
	switch {
	case !now.ops.Has(need):
		return o, k, errNotOpen
	case len(cmd.Buf) > c.maxOp:
		return o, k, errTooLong
	case cmd.Class > solicit.Bulk:
		return o, k, fmt.Errorf("rma: %v is no class", cmd.Class)
	case cmd.Timeout != 0 && (cmd.Timeout < minOpTimeout || cmd.Timeout > maxOpTimeout):
		return o, k, within("Command.Timeout", cmd.Timeout, minOpTimeout, maxOpTimeout)
	}
	return o, call{cmd: *cmd, keys: now, direct: o.Direct}, nil
}

func (p *Portal) take() (Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 || p.closed {
		return 0, ErrNoSlot
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return s, nil
}

func (p *Portal) give(s Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}

// issued does nothing: a Portal does not count waiting operations.
func (p *Portal) issued() {}

// completed adds a completion.
func (p *Portal) completed(slot Slot, end Completion) {
	end.Slot = slot
	p.mu.Lock()
	p.ends[(p.first+p.count)%p.size] = end
	p.count++
	p.mu.Unlock()
}

func (p *Portal) tell() {
	select {
	case p.ready <- struct{}{}:
	default: // there is a token
	}
}

// Poll moves completions to dst, oldest first, and returns their number. It never waits.
func (p *Portal) Poll(dst []Completion) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(dst), p.count)
	for i := range n {
		e := &p.ends[p.first]
		dst[i] = *e
		p.free = append(p.free, e.Slot)
		*e = Completion{}
		p.first = (p.first + 1) % p.size
	}
	p.count -= n
	if p.count > 0 {
		p.tell()
	}
	return n
}

// Wait is like Poll but waits until there is a completion. If dst is not empty, the only possible error is
// that of ctx: operations end in bounded time, whatever becomes of the connection.
func (p *Portal) Wait(ctx context.Context, dst []Completion) (int, error) {
	if len(dst) == 0 {
		return 0, fmt.Errorf("rma: Wait without room for a completion")
	}
	for {
		if n := p.Poll(dst); n > 0 {
			return n, nil
		}
		select {
		case <-p.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
