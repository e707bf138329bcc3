package rma

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// makeKeys derives the keys of the messages, if the connection has a secret: either both sides have it or neither has.
func (c *conn) makeKeys() error {
	if _, err := c.qp.Export("iwarp rma probe v1", []byte{}, 1); errors.Is(err, iwarp.ErrUnsupported) {
		return nil
	}
	var err error
	if c.secret, err = regionkey.BindingSecret(c.qp.Export); err != nil {
		return err
	}
	if c.out, err = regionkey.NewControl(c.qp.Export, c.ours()); err != nil {
		return err
	}
	if c.in, err = regionkey.NewControl(c.qp.Export, c.peers()); err != nil {
		return err
	}
	return nil
}

// ours returns the number that stands for this side in keys, and peers that of the peer.
func (c *conn) ours() uint8 {
	if c.initiator {
		return regionkey.Initiator
	}
	return regionkey.Responder
}

func (c *conn) peers() uint8 { return regionkey.Initiator + regionkey.Responder - c.ours() }

// prepareHello makes the HELLO of this side. If this side does not serve, its depth is 0, and its timers are
// defaults without meaning.
func (c *conn) prepareHello() error {
	h := wire.Hello{
		Chosen: wire.NoSuite, MaxOp: uint32(c.settings.maxOp),
		PullTimeout: defaultPullTimeout, Guard: defaultGuard, Linger: defaultLinger,
	}
	// The keys of a client depend on its identity, so a server that does not know the client offers no suite with keys.
	if c.out != nil && (c.server == nil || c.peer.known) {
		h.Offered = wire.Offer(regionkey.SuiteAES256)
		if !c.aes256 {
			h.Offered |= wire.Offer(regionkey.SuiteAES128)
		}
	}
	if c.insecure {
		h.Offered |= wire.Offer(wire.Suite0)
	}
	if h.Offered == 0 {
		return fmt.Errorf("%w: the connection has no keys, or the peer no identity, and Insecure is not set", ErrNoSuite)
	}
	if s := c.server; s != nil {
		h.Depth = uint16(s.cfg.Depth)
		h.PullTimeout, h.Guard, h.Linger = s.cfg.PullTimeout, s.cfg.Guard, s.cfg.Linger
	}
	_, _ = rand.Read(h.Instance[:]) // it does not fail
	c.mine = h
	return nil
}

// greet posts the first receives, and the HELLO of the initiator. mu is held.
func (c *conn) greet() {
	if err := c.receives.grow(2*int(c.mine.Depth) + 16); err != nil {
		if c.ending(err) {
			c.reach(broken)
		} else {
			c.end(err)
		}
		return
	}
	if c.hello.Start(c.now, c.initiator, c.settings.hello) {
		c.sendHello()
	}
}

// sendHello sends the HELLO of this side. mu is held.
func (c *conn) sendHello() {
	if h, ok := c.header(0, 0); ok {
		c.post(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: c.mine.Append(c.compose(), h, c.out)})
	}
}

// meet handles the HELLO of the peer, and answers it if this side is the responder. mu is held.
func (c *conn) meet(msg []byte, answer bool) {
	if err := c.theirs.Parse(msg); err != nil {
		c.refuse(err)
		return
	}
	suite, err := c.theirs.Suite(c.mine.Offered, !answer)
	if err != nil {
		c.refuse(err)
		return
	}
	if err := c.receives.grow(2 * int(c.theirs.Depth)); err != nil {
		c.end(err)
		return
	}
	if answer {
		c.mine.Chosen = uint16(suite)
		c.sendHello()
	}
	c.agree(suite)
}

// agree applies the agreed parameters, and makes the connection ready for operations. mu is held.
func (c *conn) agree(suite uint8) {
	c.suite, c.peer.instance = suite, c.theirs.Instance
	c.maxOp = int(min(c.mine.MaxOp, c.theirs.MaxOp))
	c.overhead = regionkey.TagSize
	if suite == wire.Suite0 {
		c.overhead, c.in, c.out = 0, nil, nil
	}
	c.prepareMemory()
	c.asClient = op.NewClient(op.ClientConfig{
		Slots: c.slots, Credits: int(c.theirs.Depth), Dispatch: c.dispatch, OpTimeout: c.opTimeout,
		PullTimeout: c.theirs.PullTimeout, Guard: c.theirs.Guard, Linger: c.theirs.Linger, Overhead: uint32(c.overhead),
	}, c.now)
	c.calls, c.flights = make([]call, c.slots), make([]flight, c.theirs.Depth)
	records := 2 * int(c.mine.Depth)
	cfg := op.ServerConfig{
		Credits: int(c.mine.Depth), Records: records, MaxOp: uint32(c.maxOp),
		PullTimeout: c.mine.PullTimeout, Guard: c.mine.Guard, Linger: c.mine.Linger, Overhead: uint32(c.overhead),
	}
	if s := c.server; s != nil {
		cfg.Queue, cfg.Dispatch, cfg.MaxFailures = s.cfg.QueueDepth, s.cfg.Dispatch, s.cfg.MaxFailures
	}
	c.asServer = op.NewServer(cfg, c.now)
	c.requests = make([]request, records)
	close(c.ready)
}
