package commit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Config says how one stream serves Commits.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // of the stream

	Limits Offer // Regions is at least 1

	// Strict answers NotDurable for a region that nothing makes durable. Otherwise such a
	// region is none of Commit's business, and a success (draft section 2.1).
	Strict bool

	// Task returns a function that runs f, which may wait for a disk, in a goroutine of its
	// own each time that it is called. There are never more of them at once than the stream's
	// IRD. nil: the peer's requests are refused.
	Task func(f func()) (start func())

	// UnderWay, unless nil, is told how many requests more are being served, or less. While
	// there are any, a Flusher may be called.
	UnderWay func(change int)

	// Panicked, unless nil, is told of a Flusher, or of a Buffer that is to store a follow-on, that
	// panicked. The peer is told DataLost, or FollowOnFailed.
	Panicked func(*stag.PanicError)

	Stats *Stats // nil: not counted
}

// Stats counts what streams have served.
type Stats struct {
	Commits    atomic.Uint64 // requests that were valid
	Failed     atomic.Uint64 // of them, those with a status other than 0
	NotDurable atomic.Uint64 // regions that nothing makes durable
}

// NewExtension makes Commit available to one stream, in both roles.
func NewExtension(c Config) *rdmap.Extension {
	x := &rdmap.Extension{
		Request: OpRequest, Response: OpResponse,
		MaxRequest: MaxRequestLen(int(c.Limits.Regions)), MaxResponse: ResponseLen,
		Accept: accept,
	}
	if c.Stats == nil {
		c.Stats = new(Stats)
	}
	if c.UnderWay == nil {
		c.UnderWay = func(int) {}
	}
	if c.Task != nil {
		x.Serve = (&responder{Config: c}).serve
	}
	return x
}

// A responder serves the Commits of one stream.
//
// Regions of several requests are flushed at the same time. Follow-ons are stored one
// after the other, in the order of the requests, for two may be to the same place.
type responder struct {
	Config
	mu     sync.Mutex
	spare  []*job
	queued uint64 // jobs that have got a turn
	ended  uint64 // of them, those that are done: always the first ones
	failed uint64 // of these, those whose follow-on is not durable
	early  []*job // whose regions are durable before it is their turn
}

// A job is one request that is being served. It is with one goroutine at a time: the one that
// receives, the one that flushes for it, or the one that has ended the job before it.
type job struct {
	r       *responder
	in      *rdmap.Inbound
	turn    uint64
	failed  uint64 // of the responder, when the flush of the regions began
	request Request
	targets []target // of the regions, pinned
	tail    target   // of the follow-on, pinned if there is one
	flushed int      // of targets, and then tail: what has been flushed
	status  Status

	reply [ResponseLen]byte

	// Made once, that they need not be allocated.
	goOn       func(error) (send func()) // the flush of the next target has ended
	startFlush func()                    // flush it in a goroutine that may wait, and go on
	sendAll    func()                    // send its answer, and those of the jobs after it
	after      *job                      // whose answer is to be sent after that of this one
}

// A target is what a region of a request names. Without octets it has no region.
type target struct {
	region *stag.Region
	off, n uint64
}

// flush waits until what the region has for it has made t durable.
func (t *target) flush() error {
	return t.region.Flusher().Flush(context.Background(), int64(t.off), int64(t.n))
}

func (t *target) unpin() {
	if t.region != nil {
		t.region.Unpin()
	}
	*t = target{}
}

// serve is the extension's Serve. It checks all of a request before any of it is done
// (draft section 5.2).
func (r *responder) serve(in *rdmap.Inbound) {
	j := r.take()
	j.in = in
	if err := j.open(); err != nil {
		j.unpin()
		in.Fail(err)
		r.give(j)
		return
	}
	r.Stats.Commits.Add(1)
	if r.Limits.Octets > 0 && j.request.Total() > r.Limits.Octets {
		j.unpin()
		j.answer(MakeStatus(NoRegion, Limit))
		return
	}
	r.Stats.NotDurable.Add(j.notDurable())
	r.queue(j)
	if done := j.advance(); done != nil {
		done.sendAll()
	}
}

// notDurable is how many of the regions, that of the follow-on included, nothing makes durable.
func (j *job) notDurable() (n uint64) {
	for i := range j.targets {
		n += j.targets[i].notDurable()
	}
	return n + j.tail.notDurable()
}

func (t *target) notDurable() uint64 {
	if t.region != nil && t.region.Flusher() == nil {
		return 1
	}
	return 0
}

func (r *responder) queue(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.turn, j.failed = r.queued, r.failed
	r.queued++
}

// isTurn reports whether all jobs before j are done. If not, endTurn will return it.
func (r *responder) isTurn(j *job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.turn == r.ended {
		return true
	}
	r.early = append(r.early, j)
	return false
}

// endTurn ends that of a job, and returns the next one if it has waited for that.
func (r *responder) endTurn(status Status) (next *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	if status.Code() == FollowOnFailed {
		r.failed++
	}
	for i, j := range r.early {
		if j.turn == r.ended {
			last := len(r.early) - 1
			r.early[i], r.early[last] = r.early[last], nil
			r.early = r.early[:last]
			return j
		}
	}
	return nil
}

// take returns a job that is free, or a new one. It is under way until give.
func (r *responder) take() *job {
	r.UnderWay(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		j := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return j
	}
	j := &job{r: r}
	j.sendAll = func() {
		for next := j; next != nil; {
			x := next
			next, x.after = x.after, nil
			x.answer(x.status)
		}
	}
	j.goOn = func(err error) (send func()) {
		if err != nil {
			r.tellPanic(err)
		}
		j.note(codeOf(err))
		if done := j.advance(); done != nil {
			return done.sendAll
		}
		return nil
	}
	j.startFlush = r.Task(func() {
		err := error(errUnfinished)
		defer func() {
			if send := j.goOn(err); send != nil {
				send()
			}
		}()
		err = j.next().flush()
	})
	return j
}

// tellPanic tells of an error that is a panic of a Flusher or of a Buffer.
func (r *responder) tellPanic(err error) {
	if p := new(stag.PanicError); r.Panicked != nil && errors.As(err, &p) {
		r.Panicked(p)
	}
}

// give ends what take began.
func (r *responder) give(j *job) {
	r.putBack(j)
	r.UnderWay(-1)
}

func (r *responder) putBack(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.in, j.flushed, j.status = nil, 0, 0
	r.spare = append(r.spare, j)
}

// open reads the request, and finds and pins what it names: an Invalidate waits until
// the flush does not touch the octets any more.
func (j *job) open() *transport.Fault {
	if fault := j.request.Parse(j.in.Payload()); fault != nil {
		return fault
	}
	if n, most := len(j.request.Regions), int(j.r.Limits.Regions); n > most { // in the room of a follow-on
		return transport.Faultf(transport.DDPTooLong, "Commit of %d regions, at most %d are served", n, most)
	}
	for i, g := range j.request.Regions {
		var t target
		if g.Len > 0 {
			var fault *transport.Fault
			if t, fault = j.r.find(g.STag, g.TO, g.Len); fault != nil {
				fault.Err = fmt.Errorf("region %d: %w", i, fault.Err)
				return fault
			}
		}
		j.targets = append(j.targets, t)
	}
	if !j.request.HasFollowOn {
		return nil
	}
	at := j.request.At
	var fault *transport.Fault
	if j.tail, fault = j.r.find(at.STag, at.TO, stag.AtomicLen); fault != nil {
		return fault
	}
	switch {
	case !j.tail.region.Aligned(j.tail.off):
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "follow-on to %v at TO %#x, which is not aligned", at.STag, at.TO)
	case !j.tail.region.StoresAtomically():
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "follow-on to %v, whose buffer does not store eight octets at once", at.STag)
	}
	return nil
}

func (r *responder) find(st stag.STag, to uint64, n uint32) (target, *transport.Fault) {
	g, off, v := r.Table.PinLong(r.Scope, st, stag.RemoteWrite, to, uint64(n))
	if v != stag.None {
		return target{}, transport.Faultf(rdmap.ProtectionCode(v), "%v: Commit of %d octets of %v at TO %#x", v, n, st, to)
	}
	return target{g, off, uint64(n)}, nil
}

// advance does what the request asks for, and then goes on with the jobs that have waited
// for this one. It returns where a flush must be waited for: when that has ended goOn calls it
// again. It returns the first of the jobs that are done, whose answers are to be sent: when it has
// returned, since to send one may have to wait for the pins of any other job.
func (j *job) advance() (done *job) {
	last := &done
	for j != nil && j.flushRegions() && j.r.isTurn(j) && j.flushAgain() && j.followOn() {
		j.unpin()
		*last, last = j, &j.after
		j = j.r.endTurn(j.status)
	}
	return done
}

func (j *job) flushRegions() (done bool) {
	for j.status == 0 && j.flushed < len(j.targets) {
		c, done := j.flush()
		if !done {
			return false
		}
		j.note(c)
	}
	return true
}

// flushAgain flushes the regions once more if a follow-on before j is not durable: it may be to
// one of them, and it was stored when they had been flushed. It is j's turn, so no other job changes
// failed of the responder.
func (j *job) flushAgain() (done bool) {
	if j.status != 0 || j.flushed > len(j.targets) || j.failed == j.r.failed {
		return true
	}
	j.failed, j.flushed = j.r.failed, 0
	return j.flushRegions()
}

// next is what is to be flushed next.
func (j *job) next() *target {
	if j.flushed < len(j.targets) {
		return &j.targets[j.flushed]
	}
	return &j.tail
}

// note notes how the flush of the next target has ended.
func (j *job) note(c Code) {
	switch {
	case c == OK:
	case j.flushed < len(j.targets):
		j.status = MakeStatus(j.flushed, c)
	default:
		j.status = MakeStatus(NoRegion, FollowOnFailed)
	}
	j.flushed++
}

func (j *job) followOn() (done bool) {
	if j.status != 0 || j.tail.region == nil || j.flushed > len(j.targets) {
		return true
	}
	if j.r.Strict && j.tail.region.Flusher() == nil {
		j.status = MakeStatus(NoRegion, NotDurable)
		return true
	}
	if err := j.r.Table.Store(j.tail.region, j.tail.off, j.request.Value); err != nil {
		j.r.tellPanic(err)
		j.status = MakeStatus(NoRegion, FollowOnFailed)
		return true
	}
	c, done := j.flush()
	if done {
		j.note(c)
	}
	return done
}

// flush flushes the next target. If it is not done goOn is called when it is, which may have
// been already.
func (j *job) flush() (c Code, done bool) {
	t := j.next()
	if t.region == nil {
		return OK, true
	}
	switch f := t.region.Flusher().(type) {
	case nil:
		if j.r.Strict {
			return NotDurable, true
		}
		return OK, true
	case asyncFlusher:
		pending, err := f.flushThen(int64(t.off), int64(t.n), j.goOn)
		return codeOf(err), !pending
	default:
		j.startFlush()
		return OK, false
	}
}

// answer ends the job, which pins nothing any more.
func (j *job) answer(st Status) {
	if st != 0 {
		j.r.Stats.Failed.Add(1)
	}
	p := Response{ID: j.request.ID, Status: st}.Append(j.reply[:0])
	j.in.Reply(p)
	j.r.give(j)
}

func (j *job) unpin() {
	for i := range j.targets {
		j.targets[i].unpin()
	}
	j.targets = j.targets[:0]
	j.tail.unpin()
}
