package rma

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// message handles a message that has completed a receive. mu is held.
func (c *conn) message(wc *iwarp.WC) {
	if c.err != nil {
		return
	}
	i := int(wc.ID)
	msg := c.receives.mems[i][:wc.Len]
	h, err := wire.Open(msg, c.recvCtr, c.in)
	if err != nil {
		c.refuse(err)
		return
	}
	c.recvCtr++
	answer, why := c.hello.Receive(op.Type(h.Type))
	switch {
	case why != 0:
		c.endFor(why)
	case h.Type == wire.TypeHello:
		c.meet(msg, answer)
	case c.asClient != nil: // else the HELLO was not agreed on, while the QP was ending
		c.operation(msg, h, wc)
	}
	if err := c.receives.again(i); err != nil {
		c.notPosted(err)
	}
	c.perform()
	c.asked.secret.Wipe()
}

// said holds fields of the current message, for the actions that follow from it. Work that is done without
// mu uses copies.
type said struct {
	tag     uint32 // the STag that the message names
	to      uint64
	salt    [16]byte
	dataCtr uint64
}

// operation passes a message to the machine of its role.
func (c *conn) operation(msg []byte, h wire.Header, wc *iwarp.WC) {
	m := op.Message{Type: op.Type(h.Type), Op: h.Op, Class: h.Class, Invalidated: c.leases.role(wc.STag, h.Op)}
	c.said = said{}
	if err := c.parse(msg, &m); err != nil {
		c.refuse(err)
		return
	}
	if m.Role() == op.ServerRole {
		c.serverDo = c.asServer.Receive(c.serverDo, c.now, &m)
	} else {
		c.clientDo = c.asClient.Receive(c.clientDo, c.now, &m)
	}
}

// parse reads the body of a message. It puts what the machines need into m, and the rest where it will be
// needed.
func (c *conn) parse(msg []byte, m *op.Message) error {
	switch m.Type {
	case op.TypeOpenReq, op.TypeReadReq, op.TypeWriteReq, op.TypeRekeyReq:
		return c.parseRequest(msg, m)
	case op.TypeData:
		return c.parseData(msg, m)
	default:
		return c.parseAnswer(msg, m)
	}
}

// errContradiction is the error of a message that does not fit its operation.
var errContradiction = fmt.Errorf("%w: it contradicts its operation", wire.ErrMalformed)

// parseAnswer reads an answer to an operation of this side. An operation that has ended has no call any
// more.
func (c *conn) parseAnswer(msg []byte, m *op.Message) error {
	k := c.call(m.Op)
	switch m.Type {
	case op.TypeOpenRep:
		return c.parseOpenRep(msg, k)
	case op.TypeReadDone:
		var b wire.ReadDone
		err := b.Parse(msg)
		m.Length, c.said.dataCtr = b.Length, b.DataCtr
		return k.agrees(err, b.Epoch)
	case op.TypePull:
		var b wire.Pull
		err := b.Parse(msg, c.suite)
		m.Length, m.Salt, m.Timeout, m.Source = b.Length, b.Salt, b.Timeout, b.SinkSTag == 0
		c.said = said{salt: b.Salt, tag: b.SinkSTag, to: b.SinkTO}
		return err
	case op.TypeWriteDone:
		var b wire.WriteDone
		err := b.Parse(msg)
		m.Length, m.Salt = b.Length, b.Salt
		return k.agrees(err, b.Epoch)
	case op.TypeRekeyDone:
		var b wire.RekeyDone
		err := b.Parse(msg)
		if err == nil && k != nil && (b.Region != k.region() || b.Epoch != k.next) {
			return errContradiction
		}
		return err
	default:
		var b wire.Status
		err := b.Parse(msg)
		m.Code, m.Reason, m.RetryAfter = uint16(b.Code), b.Reason, b.RetryAfter
		return err
	}
}

// agrees checks the epoch of an answer. If err is not nil, it returns err.
func (k *call) agrees(err error, epoch regionkey.Epoch) error {
	if err == nil && k != nil && (k.keys == nil || epoch != k.keys.epoch) {
		return errContradiction
	}
	return err
}

func (c *conn) parseOpenRep(msg []byte, k *call) error {
	if k == nil || k.opens == nil {
		return new(wire.OpenRep).Parse(msg)
	}
	o := k.opens
	o.number = c.recvCtr
	if err := o.granted.Parse(msg); err != nil {
		return err
	}
	if o.granted.Region != o.id || o.granted.Ops&^wire.Ops(o.ops) != 0 {
		return errContradiction
	}
	return nil
}

// refuse ends the connection because of a message that no honest peer sends, and records that.
func (c *conn) refuse(err error) {
	if c.err == nil {
		c.record(AuditEvent{Reason: err.Error()})
	}
	c.end(err)
}

// endTexts are the reasons for which the machines end a connection.
var endTexts = map[op.Why]string{
	op.NotFirst: "HELLO is not the first message, or it came twice", op.NoHello: "no HELLO in time",
	op.Unexpected: "a message that nothing has asked for", op.Contradiction: "a message that contradicts its operation",
	op.OverCredit: "more requests than the peer has credits", op.OverMaxOp: "an operation that is too long",
	op.SameID: "a request with the ID of another one", op.NeverPulled: "data that nothing has asked for",
	op.TooManyFailures: "too many requests with wrong keys", op.NotRead: "the octets of a write have not come in time",
}

// endFor ends the connection for a reason of the machines. mu is held.
func (c *conn) endFor(why op.Why) {
	if why == op.NoHello || why == op.NotRead {
		c.end(fmt.Errorf("%w: %s", ErrTimeout, endTexts[why]))
		return
	}
	c.refuse(fmt.Errorf("%w: %s", errProtocol, endTexts[why]))
}

// record makes an audit record about the peer. It is logged later, because a Handler may take long. mu is held.
func (c *conn) record(e AuditEvent) {
	if c.server == nil {
		return
	}
	e.Time, e.Peer, e.Known, e.Remote = time.Now(), c.peer.peer, c.peer.known, c.qp.RemoteAddr()
	if c.server.audit.keep(byPeer(&e.Peer), &e) {
		c.work = append(c.work, work{do: workLog, event: new(e)})
	}
}
