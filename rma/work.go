package rma

import (
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// Work that is done without mu.
const (
	workOpenRead  = iota // opens the blob of a read, and copies it to the caller
	workSeal             // seals the octets of a write
	workServe            // makes the answer to a request
	workOpenWrite        // opens the blob of a write
	workCopy             // copies the octets of a write to the region
	workLog              // passes a record of the audit log to the Logger
)

// A work is a task that takes long. The call or request that it belongs to stays until finish.
type work struct {
	do     uint8
	kind   op.Kind
	source bool
	id     op.ID
	record int
	before time.Time
	call   *call
	q      *request
	octets int
	event  *AuditEvent

	good    bool
	verdict op.Verdict
	copied  op.CopyResult
	blob    int
	mem     []byte // of the blob or the sink
	err     error  // that ends the connection
}

// later adds work to do when mu has been unlocked. Work that needs a blob gets it now.
func (c *conn) later(w work) {
	switch w.do {
	case workOpenRead, workSeal:
		w.call = c.call(w.id)
		w.octets = len(w.call.cmd.Buf)
	default:
		w.q = &c.requests[w.record]
		w.octets = int(w.q.length)
	}
	switch w.do {
	case workOpenRead:
		w.mem = c.flights[w.record].sink.mem
	case workSeal:
		w.blob, w.err = c.blobs.get(true)
		w.mem = c.blobMem(w.blob)
	case workServe:
		if w.kind == op.Read {
			w.blob, w.err = c.blobs.get(false)
			w.mem = c.blobMem(w.blob)
		}
	case workOpenWrite:
		w.mem = w.q.sink.mem
	case workCopy:
		if w.source {
			w.mem = c.blobMem(w.q.blob)
		} else {
			w.mem = w.q.sink.mem
		}
	}
	c.work = append(c.work, w)
	c.owed += w.octets
}

func (c *conn) blobMem(b int) []byte {
	if b == noBlob {
		return nil
	}
	return c.blobs.all[b].mem
}

// nextWork takes the next work from the list. mu is held.
func (c *conn) nextWork() (w work, ok bool) {
	c.perform() // which may add some
	if len(c.work) == 0 {
		return work{}, false
	}
	w = c.work[0]
	n := copy(c.work, c.work[1:])
	c.work[n] = work{}
	c.work = c.work[:n]
	c.owed -= w.octets
	return w, true
}

// do does the work. mu is not held.
func (c *conn) do(w *work) {
	switch w.do {
	case workOpenRead:
		w.good = c.openRead(w)
	case workSeal:
		c.sealWrite(w)
	case workServe:
		c.serveRequest(w)
	case workOpenWrite:
		w.good = c.openWrite(w)
	case workCopy:
		w.copied = copyWrite(w)
	case workLog:
		c.server.audit.log(w.event)
	}
}

// finish reports the result of the work to the machine. mu is held.
func (c *conn) finish(w *work) {
	unsent := w.do == workSeal && errors.Is(w.err, iwarp.ErrLimit)
	if !unsent {
		c.endIf(w.err)
	}
	if c.stage == gone {
		c.lookAgain() // this may have been the last operation
	}
	switch w.do {
	case workOpenRead:
		c.clientDo = c.asClient.Opened(c.clientDo, c.now, w.id, w.good)
	case workSeal:
		w.call.blob = w.blob
		if unsent {
			w.call.why = w.err
			c.clientDo = c.asClient.Unsent(c.clientDo, c.now, w.id)
		} else {
			c.clientDo = c.asClient.Sealed(c.clientDo, c.now, w.id)
		}
	case workServe:
		w.q.blob = w.blob
		if w.kind == op.Open && w.verdict.Outcome == op.OK {
			c.permit(w.q)
			c.record(AuditEvent{Op: Open, Region: w.q.number, Epoch: w.q.epoch, Ops: Ops(w.q.reply.Ops), Granted: true})
		}
		c.serverDo = c.asServer.Served(c.serverDo, c.now, w.id, w.verdict)
	case workOpenWrite:
		c.serverDo = c.asServer.Opened(c.serverDo, c.now, w.id, w.good)
	case workCopy:
		c.serverDo = c.asServer.Copied(c.serverDo, c.now, w.id, w.copied)
	}
}

// aadOf returns the AAD of a call, without the salt.
func (c *conn) aadOf(k *call, t regionkey.OpType, dir uint8) regionkey.AAD {
	return regionkey.AAD{
		Op: t, Dir: dir, Suite: c.suite, Region: k.region(), Epoch: k.keys.epoch, Length: uint32(len(k.cmd.Buf)),
		Offset: k.cmd.Off, OpID: uint64(k.id), DataCtr: k.dataCtr,
	}
}

// openRead opens the blob of a read, and copies the contents. Unless the read is Direct, it does not touch
// the caller's buffer before the blob is known to be authentic.
func (c *conn) openRead(w *work) bool {
	k := w.call
	if c.suite == wire.Suite0 {
		copy(k.cmd.Buf, w.mem)
		return true
	}
	a := c.aadOf(k, regionkey.Read, c.peers())
	blob, aad := w.mem[:len(k.cmd.Buf)+c.overhead], a.Append(k.aad[:0])
	if k.cmd.Direct {
		return k.keys.readIn.OpenTo(k.cmd.Buf, blob, k.dataCtr, aad) == nil
	}
	plain, err := k.keys.readIn.OpenInPlace(blob, k.dataCtr, aad)
	if err != nil {
		return false
	}
	copy(k.cmd.Buf, plain)
	return true
}

// sealWrite seals the octets of a write.
func (c *conn) sealWrite(w *work) {
	k := w.call
	switch {
	case w.err != nil:
	case c.suite == wire.Suite0:
		copy(w.mem, k.cmd.Buf)
	default:
		if k.dataCtr, w.err = c.dataCtr.Next(); w.err != nil {
			return
		}
		a := c.aadOf(k, regionkey.Write, c.ours())
		a.Salt = k.salt
		k.keys.writeOut.Seal(w.mem[:0], k.cmd.Buf, k.dataCtr, a.Append(k.aad[:0]))
	}
}

// aadOfRequest returns the AAD of an operation on a region of this side.
func (c *conn) aadOfRequest(q *request, t regionkey.OpType, dir uint8) regionkey.AAD {
	return regionkey.AAD{
		Op: t, Dir: dir, Suite: c.suite, Region: q.number, Epoch: q.epoch, Length: q.length,
		Offset: q.off, OpID: uint64(q.id), DataCtr: q.dataCtr, Salt: q.salt,
	}
}

// serveRequest makes the answer to a request.
func (c *conn) serveRequest(w *work) {
	switch w.kind {
	case op.Open:
		w.verdict = c.serveOpen(w.q)
	case op.Read:
		w.verdict = c.serveRead(w)
	default:
		w.verdict = c.serveRekey(w.q)
	}
}

// serveRead reads octets of a region into a blob, and seals them there.
func (c *conn) serveRead(w *work) op.Verdict {
	q := w.q
	switch {
	case w.mem == nil:
		return op.Verdict{Outcome: op.NACK, Reason: op.QueueFull}
	case !q.region.begin():
		return op.Verdict{Outcome: op.NACK, Reason: op.Closing}
	}
	defer q.region.end()
	plain := w.mem[:q.length]
	m, lends := q.region.buf.(*Memory)
	if lends && c.suite != wire.Suite0 { // seal from where they are, which saves a copy
		m.mu.RLock()
		defer m.mu.RUnlock()
		plain = m.b[q.off:][:q.length]
	} else if n, _ := q.region.buf.ReadAt(plain, int64(q.off)); n < len(plain) { // a short read is a failure
		return op.Verdict{Outcome: op.RemoteError}
	}
	if c.suite == wire.Suite0 {
		return op.Verdict{}
	}
	if q.dataCtr, w.err = c.dataCtr.Next(); w.err != nil {
		return op.Verdict{Outcome: op.RemoteError}
	}
	a := c.aadOfRequest(q, regionkey.Read, c.ours())
	q.data.Seal(w.mem[:0], plain, q.dataCtr, a.Append(q.aad[:0]))
	return op.Verdict{}
}

// serveOpen decides whether the peer may open a region. It does not distinguish between an unknown region
// and a refusal.
func (c *conn) serveOpen(q *request) op.Verdict {
	refused := op.Verdict{Outcome: op.RemoteAuth, Reason: op.BadKey}
	r, ops := c.server.region(q.number), q.ops
	if ops != 0 && c.server.cfg.Authorize != nil { // also for unknown regions: the response time must not reveal them
		ops &= c.server.cfg.Authorize(c.peer.peer, q.number, ops)
	}
	if r == nil || ops&r.ops == 0 {
		return refused
	}
	ops &= r.ops
	q.region, q.reply = r, wire.OpenRep{Region: q.number, Size: r.size, Ops: wire.Ops(ops)}
	if !r.grant(time.Now(), &c.peer, c.suite != wire.Suite0, &q.reply) {
		return refused
	}
	q.epoch = q.reply.Epoch
	return op.Verdict{}
}

// serveRekey gives a region its next epoch.
func (c *conn) serveRekey(q *request) op.Verdict {
	var secret []byte
	if q.secret != (regionkey.Key{}) {
		secret = q.secret[:]
	}
	e := AuditEvent{Peer: c.peer.peer, Known: c.peer.known, Remote: c.qp.RemoteAddr()}
	err := q.region.rekeyTo(time.Now(), q.next, secret, q.grace, e)
	switch {
	case err == nil:
		return op.Verdict{}
	case errors.Is(err, regionkey.ErrClosed):
		return op.Verdict{Outcome: op.NACK, Reason: op.Closing}
	default:
		return op.Verdict{Outcome: op.Conflict}
	}
}

// openWrite opens the blob of a write in place.
func (c *conn) openWrite(w *work) bool {
	if c.suite == wire.Suite0 {
		return true
	}
	q := w.q
	a := c.aadOfRequest(q, regionkey.Write, c.peers())
	_, err := q.data.OpenInPlace(w.mem[:int(q.length)+c.overhead], q.dataCtr, a.Append(q.aad[:0]))
	return err == nil
}

// copyWrite copies the octets of a write to the region, if there is time left.
func copyWrite(w *work) op.CopyResult {
	q := w.q
	if !q.region.begin() {
		return op.CopyClosing
	}
	defer q.region.end()
	m, waits := q.region.buf.(*Memory)
	if waits { // as long as others have it: the time counts when the copy begins
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	if !time.Now().Before(w.before) {
		return op.CopyLate
	}
	if waits {
		copy(m.b[q.off:], w.mem[:q.length])
	} else if _, err := q.region.buf.WriteAt(w.mem[:q.length], int64(q.off)); err != nil {
		return op.CopyFailed
	}
	return op.CopyDone
}
