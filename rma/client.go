package rma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

// controlSlots are the slots for Open and Rekey. They belong to no Portal.
const controlSlots = 8

// A Client operates on the regions of one connection's peer.
type Client struct {
	c   *conn
	cfg ClientConfig

	control chan struct{}        // one token for each control slot
	mu      sync.Mutex           // locked before that of cfg.Slots
	left    int                  // slots for Portals
	portals map[*Portal]struct{} // nil: the Client is closed
}

// NewClient begins to use the connection of qp, and returns when the peer has agreed, or with the error
// of ctx. The QP and its CQ belong to the Client from then on: see Prepare for what they need. If cfg is
// not valid, or does not fit the keys or the CQs of the QP, the QP remains unchanged. After any later
// error, for example because its queues are too short or it belongs to another PD, the QP has ended. The
// caller must call Close, even after the connection has ended.
func NewClient(ctx context.Context, qp *iwarp.QP, cfg *ClientConfig) (*Client, error) {
	if cfg == nil {
		cfg = new(ClientConfig)
	}
	full, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if full.Server != nil && full.Server.err != nil {
		return nil, full.Server.err
	}
	c, err := newConn(qp, clientSettings(&full))
	if err != nil {
		return nil, err
	}
	c.start()
	select {
	case <-c.ready:
	case <-c.done:
		return nil, c.failure()
	case <-ctx.Done():
		c.abort()
		return nil, ctx.Err()
	}
	cl := &Client{c: c, cfg: full, control: make(chan struct{}, controlSlots), left: full.MaxSlots, portals: make(map[*Portal]struct{})}
	for range controlSlots {
		cl.control <- struct{}{}
	}
	return cl, nil
}

// failure returns why the connection has ended. mu is not held.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.lostBy()
}

// MaxOp returns how many octets an operation can move: the smaller MaxOp of the two sides.
func (cl *Client) MaxOp() int { return cl.c.maxOp }

// Suite returns how operations are protected: 0 not at all, 1 by AES-128-GCM, 2 by AES-256-GCM.
func (cl *Client) Suite() uint8 { return cl.c.suite }

// Done returns a channel that is closed when the connection and all its operations have ended.
func (cl *Client) Done() <-chan struct{} { return cl.c.done }

// Close ends the connection. Operations whose request was not sent fail with an error that matches
// net.ErrClosed. Close waits for the outcome of the others, which end in bounded time, and until
// ClientConfig.Server has finished the requests that it has begun for the peer. So neither the methods of
// that Server's Buffers nor its Authorize may call Close, which would wait for itself; they can call
// QP.Abort. Close returns nil. It may be called again.
func (cl *Client) Close() error {
	cl.c.shutDown()
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for p := range cl.portals {
		cl.cfg.Slots.give(p.size)
	}
	cl.portals = nil
	return nil
}

// Err returns why the connection has ended, as an error that matches net.ErrClosed, or nil if it has not ended.
func (cl *Client) Err() error {
	if !cl.ended() {
		return nil
	}
	return cl.c.closedBy()
}

// ended reports whether the connection has ended. Some of its operations may have no outcome yet.
func (cl *Client) ended() bool { return closed.Is(cl.c.qp.Done()) }

func (c *conn) closedBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostBy()
}

// A Handle is a region of the peer with the rights that this side has on it. It is valid only on the
// connection of its Client.
type Handle struct {
	client *Client
	region uint64
	ops    Ops
	keys   atomic.Pointer[keys]
}

// keys seal the operations on a region in one epoch. They do not change.
type keys struct {
	number                               uint64 // of the answer that brought them
	epoch                                regionkey.Epoch
	ops                                  Ops
	size                                 uint64
	readOut, readIn, writeOut, manageOut *regionkey.Sealer
}

// Region returns the number of the region.
func (h *Handle) Region() uint64 { return h.region }

// Size returns the size of the region in octets.
func (h *Handle) Size() uint64 { return h.keys.Load().size }

// Ops returns the rights that were granted.
func (h *Handle) Ops() Ops { return h.keys.Load().ops }

// Epoch returns the epoch of the keys that the Handle holds.
func (h *Handle) Epoch() regionkey.Epoch { return h.keys.Load().epoch }

// Open requests the keys of a region for the rights in ops; Handle.Ops returns those that were granted.
// If none was granted, the error matches ErrRemoteAuth, as for a region that does not exist. At most
// eight calls of Open, Reopen and Rekey run on a Client at the same time; others wait. If ctx ends, Open
// returns its error at once.
func (cl *Client) Open(ctx context.Context, region uint64, ops Ops) (*Handle, error) {
	if ops == 0 || ops&^allOps != 0 {
		return nil, fmt.Errorf("rma: Open with rights that do not exist: %#x", uint8(ops))
	}
	h := &Handle{client: cl, region: region, ops: ops}
	if err := h.Reopen(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// Reopen requests the keys again, after the region's key has been replaced. Operations that were posted
// before keep the keys that they have.
func (h *Handle) Reopen(ctx context.Context) error {
	cl := h.client
	o := &opening{id: h.region, ops: h.ops}
	if err := cl.do(ctx, op.Open, &call{cmd: Command{Op: Open}, opens: o}); err != nil {
		return err
	}
	return h.take(o)
}

// take stores the granted keys in the Handle, unless a later answer has brought newer ones meanwhile.
func (h *Handle) take(o *opening) error {
	k, err := h.client.c.keysOf(o)
	if err != nil {
		return err
	}
	for old := h.keys.Load(); old == nil || old.number < k.number; old = h.keys.Load() {
		if h.keys.CompareAndSwap(old, k) {
			break
		}
	}
	return nil
}

// Rekey gives the region its next key: 32 random octets, which Rekey copies. If key is nil, the server
// makes one, as it always does in suite 0. The keys that clients hold stay valid for the grace (0: no
// longer), in whole milliseconds, limited by RegionOptions.MaxGrace and by the next Rekey. This Handle
// must be reopened too. Rekey needs the right MayManage. The error matches ErrConflict if the region has
// another key by now. If ctx ends, Rekey returns its error at once. After that, and after an error that
// matches ErrTimeout, the region may have its next key already, or get it later.
func (h *Handle) Rekey(ctx context.Context, key []byte, grace time.Duration) error {
	k := h.keys.Load()
	r := &rekeying{grace: grace}
	switch {
	case !k.ops.Has(MayManage):
		return errNotOpen
	case key != nil && len(key) != len(r.secret):
		return fmt.Errorf("rma: a key of %d octets, %d are needed", len(key), len(r.secret))
	case grace < 0:
		return fmt.Errorf("rma: the grace is negative: %v", grace)
	}
	copy(r.secret[:], key)
	return h.client.do(ctx, op.Rekey, &call{cmd: Command{Op: Rekey, Handle: h}, keys: k, rekeys: r, next: k.epoch + 1})
}

// keysOf makes the keys of a region from what the server has granted.
func (c *conn) keysOf(o *opening) (*keys, error) {
	g := &o.granted
	k := &keys{number: o.number, epoch: g.Epoch, ops: Ops(g.Ops), size: g.Size}
	if c.out == nil {
		return k, nil
	}
	for _, want := range []struct {
		t   regionkey.OpType
		dir uint8
		to  **regionkey.Sealer
	}{
		{regionkey.Read, c.ours(), &k.readOut},
		{regionkey.Read, c.peers(), &k.readIn},
		{regionkey.Write, c.ours(), &k.writeOut},
		{regionkey.Manage, c.ours(), &k.manageOut},
	} {
		b := regionkey.Binding{Secret: c.secret, Owner: c.peers(), Dir: want.dir, Suite: c.suite}
		s, err := regionkey.Traffic(g.Key(want.t), &b)
		if err != nil {
			return nil, err
		}
		*want.to = s
	}
	for i := range g.Keys {
		g.Keys[i].Wipe()
	}
	return k, nil
}

// A waiter waits for one operation.
type waiter chan Completion

func (w waiter) issued() {}

func (w waiter) completed(_ Slot, end Completion) { w <- end }

func (w waiter) tell() {}

// do does an Open or a Rekey.
func (cl *Client) do(ctx context.Context, kind op.Kind, k *call) error {
	select {
	case <-cl.control:
	case <-ctx.Done():
		return ctx.Err()
	}
	w := make(waiter, 1)
	k.to = w
	err := cl.c.begin(op.Command{Kind: kind}, k)
	cl.c.send()
	if err != nil {
		k.wipe()
		cl.control <- struct{}{}
		return err
	}
	select {
	case end := <-w:
		cl.control <- struct{}{}
		return end.Err
	case <-ctx.Done():
		go func() { // every operation ends in bounded time
			<-w
			k.wipe()
			cl.control <- struct{}{}
		}()
		return ctx.Err()
	}
}

// begin starts an operation. Its request leaves with the next send, together with other requests.
func (c *conn) begin(cmd op.Command, k *call) error {
	c.enter()
	defer c.mu.Unlock()
	k.posted, k.timeout = c.now, c.opTimeout
	if cmd.Timeout != 0 {
		k.timeout = cmd.Timeout
	}
	var err error
	c.clientDo, k.id, err = c.asClient.Post(c.clientDo, c.now, cmd)
	if err != nil {
		return c.postError(err)
	}
	c.calls[k.id.Slot()] = *k
	c.busy++
	c.perform()
	return nil
}

// send sends the requests of operations that begin has started.
func (c *conn) send() {
	c.mu.Lock()
	c.leaveToRun()
}

func (c *conn) postError(err error) error {
	switch {
	case errors.Is(err, op.ErrClosed):
		return c.lostBy()
	case errors.Is(err, op.ErrNoSlot):
		return ErrNoSlot
	default:
		return fmt.Errorf("%w: %w", net.ErrClosed, err)
	}
}
