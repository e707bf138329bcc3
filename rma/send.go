package rma

import (
	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A work request whose completion matters has an ID that identifies its purpose. The others are unsignaled.
const (
	idKind = 32 // bits below the kind

	kindBlob = 1 // a blob was sent; the lower bits are its number
	kindPull = 2 // a source was read; the lower bits are the record
)

// header makes the header of the next message. It reports false if nothing is to be sent any more: after
// an error of this side the data to send may be incomplete, for example because they could not be
// sealed. mu is held.
func (c *conn) header(id op.ID, class op.Class) (wire.Header, bool) {
	ctr, err := c.sendCtr.Next()
	if err != nil {
		c.end(err)
		return wire.Header{}, false
	}
	return wire.Header{Class: class, Ctr: ctr, Op: id}, c.stage < failing
}

// sends returns a work request for a message.
func sends(msg []byte) iwarp.SendWR {
	return iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: msg}
}

// ends returns a work request for a message that invalidates an STag of the peer, unless tag is 0.
func ends(msg []byte, tag uint32) iwarp.SendWR {
	if tag == 0 {
		return sends(msg)
	}
	return iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.Unsignaled, Inline: msg, Invalidate: stag.STag(tag)}
}

// postBlob writes the first n octets of a blob to the peer's sink, and sends the message that invalidates
// the sink. When both have been sent, the blob is free again. mu is held.
func (c *conn) postBlob(b, n int, tag uint32, to uint64, msg []byte) {
	last := ends(msg, tag)
	if n == 0 {
		c.blobs.put(b)
		c.post(last)
		return
	}
	last.Flags, last.ID = 0, kindBlob<<idKind|uint64(b)
	c.blobs.posted(c.now)
	c.outbox.octets += n
	c.post(iwarp.SendWR{
		Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: c.blobs.octets(b, n),
		Remote: iwarp.RemoteBuffer{STag: stag.STag(tag), TO: to, Len: uint32(n)},
	}, last)
}

// sendStatus sends a STATUS for an operation. mu is held.
func (c *conn) sendStatus(a *op.Action, region uint64, epoch regionkey.Epoch, tag uint32) {
	if !a.Invalidate {
		tag = 0
	}
	h, ok := c.header(a.Op, a.Class)
	if !ok {
		return
	}
	m := wire.Status{Code: a.Outcome, Reason: a.Reason, Region: region, RetryAfter: a.RetryAfter}
	if a.Outcome == op.RemoteAuth && a.Reason == op.StaleEpoch {
		m.Epoch = epoch
	}
	c.post(ends(m.Append(c.compose(), h, c.out), tag))
}
