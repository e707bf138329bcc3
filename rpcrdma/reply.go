package rpcrdma

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/rpcrdma/internal/plan"
)

// ErrReply is matched by the error of a reply that could not be sent because the call leaves no room for it. The client
// was told, and only that call has failed.
var ErrReply = errors.New("rpcrdma: the reply does not fit")

var (
	errAnswered = errors.New("rpcrdma: the call was answered already")
	errOtherXID = errors.New("rpcrdma: the reply is not one to this call: another XID")
)

// Reply answers the call with a message, which begins with the call's XID; msg holds consecutive parts of the message. Reply
// returns when they have been copied: it waits while there is no memory, or while too many replies were not sent yet.
// Unless its error is that of ctx, the call is done, and its memory no longer belongs to the caller.
func (k *Call) Reply(ctx context.Context, msg ...[]byte) error {
	c := k.c
	if err := c.claim(k); err != nil {
		return err
	}
	n := 0
	for _, p := range msg {
		n += len(p)
	}
	fits := n <= c.cfg.maxReply()
	room := n
	if !fits {
		room = 0
	}
	o, err := c.begin(ctx.Done(), room)
	switch {
	case errors.Is(err, errCanceled):
		c.unclaim(k)
		return ctx.Err()
	case err != nil:
		c.giveUp(k)
		return err
	case !fits:
		c.fails(k, o)
		return fmt.Errorf("%w: it has %d octets", ErrReply, n)
	}
	to := o.message()
	for _, p := range msg {
		to = to[blockcopy.Copy(to, p):]
	}
	return c.answer(k, o)
}

// claim begins an answer.
func (c *Conn) claim(k *Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.state != handed {
		return errAnswered
	}
	k.state = answering
	return nil
}

// unclaim undoes claim: there is no answer yet.
func (c *Conn) unclaim(k *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.state = handed
}

// giveUp ends a call of a connection that has ended.
func (c *Conn) giveUp(k *Call) {
	c.mu.Lock()
	c.inHand--
	c.drop(k)
	c.settle()
	c.unlock()
}

// answer sends the reply that is in o.
func (c *Conn) answer(k *Call, o *outgoing) error {
	msg := o.message()
	if xid, ok := xidOf(msg); !ok || xid != k.rpc.XID {
		c.fails(k, o)
		return errOtherXID
	}
	var res plan.Result
	if len(k.hdr.Writes) > 0 {
		res.Off, res.Len, res.OK = c.cfg.Binding.Result(k.rpc.Program, k.rpc.Version, k.rpc.Procedure, msg)
	}
	if err := o.plan.Make(&k.hdr, len(msg), res, uint32(c.cfg.Credits), c.threshold); err != nil {
		c.fails(k, o)
		return fmt.Errorf("%w: %w", ErrReply, err)
	}
	o.compose(k)
	c.mu.Lock()
	defer c.unlock()
	return c.finish(k, o)
}

// fails answers a call with an error of the transport.
func (c *Conn) fails(k *Call, o *outgoing) {
	o.composeFailure(&k.hdr)
	c.mu.Lock()
	defer c.unlock()
	_ = c.finish(k, o)
}

// finish ends a call that was handed over. Its receive is posted before the message, which gives the client a
// credit for another call. mu is held.
func (c *Conn) finish(k *Call, o *outgoing) error {
	c.inHand--
	if c.stage == closing {
		c.drop(k)
		c.finished(o)
		return c.lostBy()
	}
	c.forget(k)
	c.enqueue(k, o)
	return nil
}

// enqueue appends a message to those that are to be posted. mu is held, as in the functions below.
func (c *Conn) enqueue(k *Call, o *outgoing) {
	c.again(k)
	o.queued = true
	c.posts = append(c.posts, o)
}

// refuse answers a call that was not handed over with an error of the transport, as soon as an outgoing is free.
func (c *Conn) refuse(k *Call) {
	c.forget(k)
	k.state = refused
	select {
	case o := <-c.idle:
		c.answerFailure(k, o)
	default:
		c.owed = append(c.owed, k)
	}
}

func (c *Conn) answerFailure(k *Call, o *outgoing) {
	o.composeFailure(&k.hdr)
	c.enqueue(k, o)
}
