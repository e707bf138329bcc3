package rma

import (
	"crypto/rand"
	"maps"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A request is an operation that the peer requests.
type request struct {
	id     op.ID
	region *Region // nil: the peer has not proved that it has the key
	number uint64  // of the region, as given by the peer
	epoch  regionkey.Epoch
	off    uint64
	length uint32
	tag    uint32 // of the sink or the source
	to     uint64

	ops    Ops // of an Open
	grace  time.Duration
	next   regionkey.Epoch
	secret regionkey.Key
	reply  wire.OpenRep

	now     regionkey.Epoch // the current epoch, to be reported to a client with an older key
	data    *regionkey.Sealer
	dataCtr uint64
	salt    [16]byte
	blob    int // sealed and not sent, or the destination of a read from a source
	aad     [regionkey.AADSize]byte

	sink   *lease // kept from one request to the next
	grant  uint64
	queued bool // in the queue of the server
}

// parseRequest reads a request, and determines whether it may be served.
func (c *conn) parseRequest(msg []byte, m *op.Message) error {
	q := &c.asked
	*q = request{id: m.Op}
	kind, err := c.readRequest(q, msg, m)
	if err != nil {
		return err
	}
	if m.Type == op.TypeOpenReq {
		return nil // Serve decides
	}
	var state op.KeyState
	state, m.Had = c.prove(c.now, q, msg, kind)
	var size uint64
	if q.region != nil {
		size = q.region.size
	}
	m.Verdict = op.Judge(state, size, q.off, q.length)
	return nil
}

// readRequest reads the body of a request.
func (c *conn) readRequest(q *request, msg []byte, m *op.Message) (regionkey.OpType, error) {
	switch m.Type {
	case op.TypeOpenReq:
		var b wire.OpenReq
		err := b.Parse(msg)
		q.number, q.ops = b.Region, Ops(b.Ops)
		if b.Instance != c.peer.instance {
			q.ops = 0
		}
		return 0, err
	case op.TypeReadReq:
		var b wire.ReadReq
		err := b.Parse(msg)
		q.number, q.epoch, q.off, q.length, q.tag, q.to = b.Region, b.Epoch, b.Offset, b.Length, b.SinkSTag, b.SinkTO
		m.Length, m.TTL = b.Length, b.TTL
		return regionkey.Read, err
	case op.TypeWriteReq:
		var b wire.WriteReq
		err := b.Parse(msg, c.suite)
		q.number, q.epoch, q.off, q.length, q.tag, q.to = b.Region, b.Epoch, b.Offset, b.Length, b.SourceSTag, b.SourceTO
		m.Length, m.Source = b.Length, b.SourceSTag != 0
		return regionkey.Write, err
	default:
		var b wire.RekeyReq
		err := b.Parse(msg, c.suite)
		q.number, q.epoch, q.grace, q.next, q.secret = b.Region, b.Epoch, b.Grace, b.Next, b.Secret
		return regionkey.Manage, err
	}
}

// parseData reads a DATA.
func (c *conn) parseData(msg []byte, m *op.Message) error {
	var b wire.Data
	err := b.Parse(msg)
	m.Length, c.said.dataCtr = b.Length, b.DataCtr
	return err
}

// prove finds the region of a request, if the peer has the key for it. had reports that the peer had the key before: since
// then, the region was given another key or closed. Such a request is not a guess.
func (c *conn) prove(now time.Time, q *request, msg []byte, t regionkey.OpType) (k op.KeyState, had bool) {
	r, p, need := c.server.region(q.number), c.opened[q.number], Ops(wire.OpsOf(t))
	had = p.ever.Has(need)
	if r == nil || r.serial != p.serial || !had {
		return op.NoKey, had // keys of an earlier connection may be right, but Authorize was not asked for this one
	}
	good := c.suite == wire.Suite0 && p.in(q.epoch).Has(need) || c.suite != wire.Suite0 && c.hasKey(now, q, r, msg, t)
	oldest, current, open := r.epochs(now) // after the check: a key that has expired since then counts as old
	switch {
	case !open:
		return op.NoKey, had
	case q.epoch < oldest: // good or not: a Sealer of an older key may still be in the cache
		q.now = current
		return op.OldKey, true
	case !good:
		return op.NoKey, false
	}
	q.region = r
	return op.RightKey, true
}

// A permit records the rights with which the peer has opened a region on this connection. On a connection without keys it
// takes their place, for the latest epoch and the one before it.
type permit struct {
	serial            uint64 // of the region: another one may have got its number
	epoch             regionkey.Epoch
	ops, before, ever Ops
}

// opens adds the rights that were granted in an epoch.
func (p *permit) opens(serial uint64, e regionkey.Epoch, ops Ops) {
	switch {
	case p.serial != serial:
		*p = permit{serial: serial, epoch: e, ops: ops}
	case p.epoch == e:
		p.ops |= ops
	case p.epoch+1 == e:
		p.epoch, p.ops, p.before = e, ops, p.ops
	default:
		p.epoch, p.ops, p.before = e, ops, 0
	}
	p.ever |= ops
}

// in returns the rights that were granted in an epoch.
func (p *permit) in(e regionkey.Epoch) Ops {
	switch e {
	case p.epoch:
		return p.ops
	case p.epoch - 1:
		return p.before
	default:
		return 0
	}
}

// permit notes what the peer has opened. Once there are more permits than there can be regions, those of closed regions are
// dropped. mu is held.
func (c *conn) permit(q *request) {
	p := c.opened[q.number]
	p.opens(q.region.serial, q.epoch, Ops(q.reply.Ops))
	c.opened[q.number] = p
	if len(c.opened) > c.server.cfg.MaxRegions {
		maps.DeleteFunc(c.opened, func(id uint64, _ permit) bool { return c.server.region(id) == nil })
	}
}

// hasKey checks the inner tag of a request, and sets the Sealer of its data.
func (c *conn) hasKey(now time.Time, q *request, r *Region, msg []byte, t regionkey.OpType) bool {
	tagged, err := c.sealer(now, r, q.epoch, t, c.peers())
	if err != nil || wire.CheckInner(msg, c.suite, tagged) != nil {
		return false
	}
	q.data = tagged // for a write: the client seals the data
	if t == regionkey.Read {
		q.data, err = c.sealer(now, r, q.epoch, t, c.ours())
	}
	return err == nil
}

// sealer returns the Sealer of one side for operations on a region, from the cache or a new one.
func (c *conn) sealer(now time.Time, r *Region, e regionkey.Epoch, t regionkey.OpType, dir uint8) (*regionkey.Sealer, error) {
	name := regionkey.CacheKey{Conn: c.id, Region: r.serial, Epoch: e, Op: t, Owner: c.ours(), Dir: dir}
	if s := c.server.cached(name); s != nil {
		return s, nil
	}
	k, ok := r.derive(now, e, &c.peer, t)
	if !ok {
		return nil, regionkey.ErrStale
	}
	defer k.Wipe()
	s, err := regionkey.Traffic(&k, &regionkey.Binding{Secret: c.secret, Owner: c.ours(), Dir: dir, Suite: c.suite})
	if err == nil {
		c.server.keep(name, s)
	}
	return s, err
}

// performServer performs an action of asServer. mu is held.
func (c *conn) performServer(now time.Time, a *op.Action) {
	switch a.Do {
	case op.Enqueue:
		c.admit(a)
		c.enqueueWrite(now, a)
	case op.Cancel:
		c.solicitor.cancel(now, c.requests[a.Record].grant)
	case op.Hold:
		c.hold(op.ServerRole, a, c.requests[a.Record].grant)
	case op.Release:
		c.release(now, a, op.ServerRole)
	case op.Revoke:
		c.revoke(op.ServerRole, a)
	case op.Serve:
		c.admit(a)
		c.later(work{do: workServe, kind: a.Kind, id: a.Op, record: a.Record})
	case op.OpenData:
		c.requests[a.Record].dataCtr = c.said.dataCtr
		c.later(work{do: workOpenWrite, id: a.Op, record: a.Record})
	case op.Copy:
		c.later(work{do: workCopy, id: a.Op, record: a.Record, before: a.Before, source: a.Source})
	case op.SendPull:
		c.sendPull(a)
	case op.SendAnswer:
		c.sendAnswer(a)
	case op.SendStatus:
		q := c.requestOf(a)
		c.sendStatus(a, q.number, q.now, q.tag)
	case op.Audit:
		c.recordFailure(a)
	case op.Free:
		c.free(a)
	case op.End:
		c.endFor(a.Why)
	default: // actions of a client
	}
}

// admit stores the current request in its record.
func (c *conn) admit(a *op.Action) {
	q := &c.requests[a.Record]
	sink := q.sink
	*q = c.asked
	q.sink = sink
}

// requestOf returns the request that an action is for.
func (c *conn) requestOf(a *op.Action) *request {
	if a.Record == op.NoRecord {
		return &c.asked
	}
	return &c.requests[a.Record]
}

// free ends a request. It overwrites the record, including keys that were granted or requested.
func (c *conn) free(a *op.Action) {
	q := &c.requests[a.Record]
	if q.blob != noBlob {
		c.blobs.put(q.blob)
	}
	c.dequeue(q)
	*q = request{sink: q.sink}
}

// enqueueWrite asks the window to admit the octets of a write. There must be memory for them.
func (c *conn) enqueueWrite(now time.Time, a *op.Action) {
	q := &c.requests[a.Record]
	q.queued = c.server.enqueue()
	if !q.queued || !c.reserve(q, a.Source) {
		c.serverDo = c.asServer.Refused(c.serverDo, now, a.Op)
		return
	}
	grant, granted, err := c.solicitor.enqueue(now, ticket{conn: c, role: op.ServerRole, id: a.Op}, solicit.Class(a.Class), a.N)
	q.grant = grant
	switch {
	case err != nil:
		c.serverDo = c.asServer.Refused(c.serverDo, now, a.Op)
	case granted:
		c.serverDo = c.asServer.Granted(c.serverDo, now, a.Op)
	}
}

// dequeue takes a request out of the queue of the server.
func (c *conn) dequeue(q *request) {
	if q.queued {
		c.server.dequeue()
	}
	q.queued = false
}

// reserve takes memory for the octets of a write.
func (c *conn) reserve(q *request, source bool) bool {
	var err error
	switch {
	case source:
		q.blob, err = c.blobs.get(false)
		return !c.endIf(err) && q.blob != noBlob
	case q.sink == nil:
		q.sink, err = c.leases.sink(op.ServerRole)
	}
	return !c.endUnlessFull(err) && q.sink != nil
}

// sendPull sends a PULL for the octets of a write, and reads them if the client has named a source. mu is held.
func (c *conn) sendPull(a *op.Action) {
	q := &c.requests[a.Record]
	c.dequeue(q)
	_, _ = rand.Read(q.salt[:]) // it does not fail
	h, ok := c.header(a.Op, a.Class)
	if !ok {
		return
	}
	m := wire.Pull{Salt: q.salt, Length: q.length, Timeout: c.mine.PullTimeout}
	if a.Source {
		pull := sends(m.Append(c.compose(), h, c.out))
		c.post(pull, iwarp.SendWR{
			ID: kindPull<<idKind | uint64(a.Record), Op: iwarp.OpRDMARead, Local: c.blobs.octets(q.blob, int(q.length)),
			Remote: iwarp.RemoteBuffer{STag: stag.STag(q.tag), TO: q.to, Len: q.length},
		})
		return
	}
	enable, err := c.leases.enable(q.sink, a.Op, q.sink.mem[:max(int(q.length)+c.overhead, 1)])
	if c.endIf(err) {
		return
	}
	m.SinkSTag = uint32(q.sink.tag())
	c.post(enable, sends(m.Append(c.compose(), h, c.out)))
	c.lent(q.sink)
}

// sendAnswer sends the answer to a request. mu is held.
func (c *conn) sendAnswer(a *op.Action) {
	q := &c.requests[a.Record]
	h, ok := c.header(a.Op, a.Class)
	if !ok {
		return
	}
	switch dst := c.compose(); a.Kind {
	case op.Open:
		c.post(sends(q.reply.Append(dst, h, c.out)))
	case op.Read:
		m := wire.ReadDone{DataCtr: q.dataCtr, Length: q.length, Epoch: q.epoch}
		b := q.blob
		q.blob = noBlob
		c.postBlob(b, int(q.length)+c.overhead, q.tag, q.to, m.Append(dst, h, c.out))
	case op.Write:
		m := wire.WriteDone{Salt: q.salt, Length: q.length, Epoch: q.epoch}
		c.post(ends(m.Append(dst, h, c.out), q.tag))
	default:
		m := wire.RekeyDone{Region: q.number, Epoch: q.next}
		c.post(sends(m.Append(dst, h, c.out)))
	}
}

// opsOf are the operations by their kinds in package op.
var opsOf = [...]Op{op.Open: Open, op.Read: Read, op.Write: Write, op.Rekey: Rekey}

// recordFailure makes an audit record of a request that was refused, or whose copy ended too late.
func (c *conn) recordFailure(a *op.Action) {
	q := c.requestOf(a)
	e := AuditEvent{Op: opsOf[a.Kind], Region: q.number, Epoch: q.epoch, Reason: "wrong key"}
	switch {
	case a.Why == op.LateCommit:
		e.Reason = "late commit"
	case a.Kind == op.Open:
		e.Reason = "open refused"
	case a.Kind == op.Write && a.Record != op.NoRecord: // the request had the right key
		e.Reason = "bad data"
	case q.now != 0:
		e.Reason = "stale epoch"
	}
	c.record(e)
}
