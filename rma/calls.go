package rma

import (
	"cmp"
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A call is an operation of this side, in its slot.
type call struct {
	id      op.ID // 0: the slot is free
	cmd     Command
	keys    *keys
	posted  time.Time
	issued  time.Time
	timeout time.Duration

	direct bool      // the peer writes to the buffer of the caller
	to     completer // to be told of the end
	slot   Slot      // of the completer
	opens  *opening  // of an Open
	rekeys *rekeying // of a Rekey
	next   regionkey.Epoch

	blob    int // sealed octets that were not sent
	dataCtr uint64
	salt    [16]byte // of a PULL
	sinkTag uint32
	sinkTO  uint64
	aad     [regionkey.AADSize]byte

	why error // why the window refused it, if it did
}

// A completer is told when an operation no longer waits on this side (issued), and how it has ended
// (completed). After all operations that ended in the same turn of the connection, it is told once that it
// may wake the goroutines that wait for them (tell). mu of the connection is held.
type completer interface {
	issued()
	completed(slot Slot, end Completion)
	tell()
}

// An opening is the request of an Open, and its answer.
type opening struct {
	id      uint64
	ops     Ops
	granted wire.OpenRep
	number  uint64 // of the message
}

// A rekeying is the request of a Rekey.
type rekeying struct {
	grace  time.Duration
	secret regionkey.Key // zero: the server makes one
}

// wipe clears the keys that an Open has obtained, and the secret of a Rekey.
func (k *call) wipe() {
	if k.rekeys != nil {
		k.rekeys.secret.Wipe()
	}
	if k.opens != nil {
		for i := range k.opens.granted.Keys {
			k.opens.granted.Keys[i].Wipe()
		}
	}
}

// A flight is the state that the connection keeps for a record of asClient.
type flight struct {
	sink  *lease
	lent  [2]*lease // for the caller's buffer: the source of a write, and the sink of a read
	grant uint64
}

// Leases for the caller's buffer.
const (
	lentSource = iota
	lentSink
)

// lease returns the lease of an operation.
func (f *flight) lease(id op.ID) *lease {
	for _, l := range f.lent {
		if l != nil && l.id == id {
			return l
		}
	}
	return f.sink
}

// region returns the ID of the region.
func (k *call) region() uint64 {
	switch {
	case k.opens != nil:
		return k.opens.id
	case k.cmd.Handle != nil:
		return k.cmd.Handle.region
	default:
		return 0
	}
}

// call finds an operation of this side; nil: it has ended. mu is held.
func (c *conn) call(id op.ID) *call {
	if n := int(id.Slot()); n < len(c.calls) && c.calls[n].id == id {
		return &c.calls[n]
	}
	return nil
}

// performClient performs an action of asClient. mu is held.
func (c *conn) performClient(now time.Time, a *op.Action) {
	switch a.Do {
	case op.Enqueue:
		c.enqueueRead(now, a)
	case op.Cancel:
		c.solicitor.cancel(now, c.flights[a.Record].grant)
	case op.Hold:
		c.hold(op.ClientRole, a, c.flights[a.Record].grant)
	case op.Release:
		c.release(now, a, op.ClientRole)
	case op.Revoke:
		c.revoke(op.ClientRole, a)
	case op.OpenData:
		c.call(a.Op).dataCtr = c.said.dataCtr
		c.later(work{do: workOpenRead, id: a.Op, record: a.Record})
	case op.Seal:
		k := c.call(a.Op)
		k.salt, k.sinkTag, k.sinkTO = c.said.salt, c.said.tag, c.said.to
		c.later(work{do: workSeal, id: a.Op, record: a.Record})
	case op.SendRequest:
		c.sendRequest(now, a)
	case op.SendData:
		c.sendData(a)
	case op.SendStatus:
		tag := c.said.tag // of the PULL, which has come just now
		if k := c.call(a.Op); k != nil {
			tag = k.sinkTag // or came before the blob was requested
		}
		c.sendStatus(a, 0, 0, tag)
	case op.Complete:
		c.complete(now, a)
	case op.End:
		c.endFor(a.Why)
	default: // Free: the next operation uses the memory of the record again
	}
}

// enqueueRead asks the window to admit a read. There must be memory for its sink.
func (c *conn) enqueueRead(now time.Time, a *op.Action) {
	if ok, err := c.hasSink(a); !ok {
		c.call(a.Op).why = cmp.Or(err, errNoMemory)
		c.endUnlessFull(err)
		c.clientDo = c.asClient.Refused(c.clientDo, now, a.Op)
		return
	}
	grant, granted, err := c.solicitor.enqueue(now, ticket{conn: c, role: op.ClientRole, id: a.Op}, solicit.Class(a.Class), a.N)
	c.flights[a.Record].grant = grant
	switch {
	case err != nil:
		c.call(a.Op).why = err
		c.clientDo = c.asClient.Refused(c.clientDo, now, a.Op)
	case granted:
		c.clientDo = c.asClient.Granted(c.clientDo, now, a.Op)
	}
}

// hasSink makes the STag of a read, and its memory unless that is the caller's buffer. It reports false if there is none left.
func (c *conn) hasSink(a *op.Action) (bool, error) {
	if c.call(a.Op).direct {
		err := c.makeLent(a, lentSink, sinkAccess)
		return err == nil, err
	}
	f := &c.flights[a.Record]
	if f.sink != nil {
		return true, nil
	}
	sink, err := c.leases.sink(op.ClientRole)
	f.sink = sink
	return sink != nil, err
}

// sendRequest sends the request of an operation. mu is held.
func (c *conn) sendRequest(now time.Time, a *op.Action) {
	k := c.call(a.Op)
	k.issued = now
	k.to.issued()
	var enable iwarp.SendWR
	var err error
	switch {
	case k.direct:
		enable, err = c.leases.enable(c.flights[a.Record].lent[lentSink], a.Op, k.cmd.Buf)
	case a.Kind == op.Read:
		sink := c.flights[a.Record].sink
		enable, err = c.leases.enable(sink, a.Op, sink.mem[:max(len(k.cmd.Buf)+c.overhead, 1)])
	case a.Source:
		enable, err = c.lendSource(a, k)
	}
	if err != nil {
		if !c.endUnlessFull(err) {
			k.why = err
			c.clientDo = c.asClient.Unsent(c.clientDo, now, a.Op)
		}
		return
	}
	h, ok := c.header(a.Op, a.Class)
	if !ok {
		return
	}
	request := sends(c.appendRequest(c.compose(), h, a, k))
	if k.rekeys != nil {
		k.rekeys.secret.Wipe()
	}
	if enable.MR != nil {
		c.post(enable, request)
		c.lent(c.leaseOf(op.ClientRole, a))
	} else {
		c.post(request)
	}
}

// lendSource lets the peer read the caller's buffer.
func (c *conn) lendSource(a *op.Action, k *call) (iwarp.SendWR, error) {
	if err := c.makeLent(a, lentSource, sourceAccess); err != nil {
		return iwarp.SendWR{}, err
	}
	return c.leases.enable(c.flights[a.Record].lent[lentSource], a.Op, k.cmd.Buf)
}

// makeLent makes a lease for the caller's buffer, unless the record has one from an earlier operation.
func (c *conn) makeLent(a *op.Action, what int, access stag.Access) (err error) {
	l := &c.flights[a.Record].lent[what]
	if *l == nil {
		*l, err = c.leases.make(op.ClientRole, access, nil)
	}
	return err
}

// appendRequest makes the request of an operation.
func (c *conn) appendRequest(dst []byte, h wire.Header, a *op.Action, k *call) []byte {
	switch a.Kind {
	case op.Open:
		m := wire.OpenReq{Region: k.opens.id, Instance: c.mine.Instance, Ops: wire.Ops(k.opens.ops)}
		return m.Append(dst, h, c.out)
	case op.Read:
		m := wire.ReadReq{
			Region: k.region(), Epoch: k.keys.epoch, Offset: k.cmd.Off, Length: uint32(len(k.cmd.Buf)),
			SinkSTag: uint32(c.flights[a.Record].lease(a.Op).tag()), TTL: k.timeout,
		}
		return m.Append(dst, h, c.out, k.keys.readOut)
	case op.Write:
		m := wire.WriteReq{Region: k.region(), Epoch: k.keys.epoch, Offset: k.cmd.Off, Length: uint32(len(k.cmd.Buf))}
		if a.Source {
			m.SourceSTag = uint32(c.flights[a.Record].lease(a.Op).tag())
		}
		return m.Append(dst, h, c.out, k.keys.writeOut)
	default:
		m := wire.RekeyReq{Region: k.region(), Epoch: k.keys.epoch, Grace: k.rekeys.grace, Next: k.next, Secret: k.rekeys.secret}
		return m.Append(dst, h, c.out, k.keys.manageOut)
	}
}

// sendData sends the blob of a write, and DATA. mu is held.
func (c *conn) sendData(a *op.Action) {
	k := c.call(a.Op)
	h, ok := c.header(a.Op, a.Class)
	if !ok {
		return
	}
	m := wire.Data{DataCtr: k.dataCtr, Length: uint32(len(k.cmd.Buf))}
	b := k.blob
	k.blob = noBlob
	c.postBlob(b, len(k.cmd.Buf)+c.overhead, k.sinkTag, k.sinkTO, m.Append(c.compose(), h, c.out))
}

// complete reports how an operation has ended, and frees its slot. mu is held.
func (c *conn) complete(now time.Time, a *op.Action) {
	k := c.call(a.Op)
	if k.blob != noBlob {
		c.blobs.put(k.blob)
	}
	end := Completion{Tag: k.cmd.Tag, Issue: k.issued.Sub(k.posted), Total: now.Sub(k.posted)}
	if k.issued.IsZero() {
		end.Issue = end.Total
		k.to.issued()
	}
	if a.Outcome == op.OK {
		end.N = len(k.cmd.Buf)
	} else {
		end.Err = c.opError(a, k)
	}
	if a.Outcome != op.OK {
		k.wipe()
	}
	to, slot := k.to, k.slot
	*k = call{}
	c.busy--
	to.completed(slot, end)
	c.outbox.tell(to)
}

// opError returns the error of a failed operation.
func (c *conn) opError(a *op.Action, k *call) error {
	e := &OpError{
		Outcome: Outcome(a.Outcome), Reason: uint16(a.Reason), Op: k.cmd.Op, Region: k.region(), Off: k.cmd.Off, RetryAfter: a.RetryAfter,
		Err: k.why,
	}
	if a.Gone || a.Outcome == op.Closed {
		e.Err = c.lostBy()
	}
	return e
}

// endIf ends the connection if err is not nil, and reports whether it is.
func (c *conn) endIf(err error) bool {
	if err != nil {
		c.end(err)
	}
	return err != nil
}

// endUnlessFull is endIf, but ignores the error that the RNIC's limit of regions is reached: then only the operation fails.
func (c *conn) endUnlessFull(err error) bool { return !errors.Is(err, iwarp.ErrLimit) && c.endIf(err) }

// release returns the grant of an operation. mu is held.
func (c *conn) release(now time.Time, a *op.Action, role op.Role) {
	var grant uint64
	switch {
	case a.Record == op.NoRecord: // cancelled and granted at the same time
		grant = c.granting
	case role == op.ClientRole:
		grant = c.flights[a.Record].grant
	default:
		grant = c.requests[a.Record].grant
	}
	c.solicitor.release(now, grant, refunds[a.Refund])
}
