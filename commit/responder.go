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

// Config configures how one stream serves Commits.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // of the stream

	Limits Offer // Regions is at least 1

	// Strict answers NotDurable for a region that nothing makes durable. Otherwise Commit
	// ignores such a region, as a success (draft section 2.1).
	Strict bool

	// Task returns a function that runs f, which may wait for a disk, in a new goroutine
	// at each call. There are never more of these goroutines at once than the stream's
	// IRD. nil: the peer's requests are refused.
	Task func(f func()) (start func())

	// UnderWay, unless nil, is called with each change of the number of requests that are being
	// served. While there are any, a Flusher may be called.
	UnderWay func(change int)

	// Panicked, unless nil, is called when a Flusher has panicked, or a Buffer that was to store a
	// follow-on. The peer receives DataLost, or FollowOnFailed.
	Panicked func(*stag.PanicError)

	Stats *Stats // nil: not counted
}

// Stats counts what streams have served.
type Stats struct {
	Commits    atomic.Uint64 // valid requests
	Failed     atomic.Uint64 // valid requests with a status other than 0
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
// after the other, in the order of the requests, because two may have the same target.
type responder struct {
	Config
	mu     sync.Mutex
	spare  []*job
	queued uint64 // jobs that have a turn
	ended  uint64 // queued jobs that are done: always the first ones
	failed uint64 // ended jobs whose follow-on is not durable
	early  []*job // jobs whose regions are durable before their turn
}

// A job is one request that is being served. One goroutine at a time owns it: the one that
// receives, the one that flushes for it, or the one that has ended the job before it.
type job struct {
	r       *responder
	in      *rdmap.Inbound
	turn    uint64
	failed  uint64 // of the responder, when the flush of the regions began
	request Request
	targets []target // of the regions, pinned
	tail    target   // of the follow-on, pinned if there is one
	flushed int      // how many of targets, and then tail, have been flushed
	status  Status

	reply [ResponseLen]byte

	// The functions are created once per job, to save allocations.
	goOn       func(error) (send func()) // continues after the flush of the next target
	startFlush func()                    // flushes the next target in a goroutine that may wait, and continues
	sendAll    func()                    // sends the answer of the job, and of the jobs after it
	after      *job                      // its answer is sent after that of this job
}

// A target is what a region of a request names. An empty one has no region.
type target struct {
	region *stag.Region
	off, n uint64
}

// flush waits until the region's Flusher has made t durable.
func (t *target) flush() error {
	return t.region.Flusher().Flush(context.Background(), int64(t.off), int64(t.n))
}

func (t *target) unpin() {
	if t.region != nil {
		t.region.Unpin()
	}
	*t = target{}
}

// serve implements the extension's Serve. It checks the whole request before it performs any
// part of it (draft section 5.2).
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

// notDurable returns how many regions, including that of the follow-on, nothing makes durable.
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

// endTurn ends the turn of a job, and returns the next job if that has waited for its turn.
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

// take returns a free job, or a new one. The job is in use until give.
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

// tellPanic reports an error that is a panic of a Flusher or of a Buffer.
func (r *responder) tellPanic(err error) {
	if p := new(stag.PanicError); r.Panicked != nil && errors.As(err, &p) {
		r.Panicked(p)
	}
}

// give returns a job of take.
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
// the flush no longer accesses the octets.
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

// advance performs the request, and then continues with the jobs that have waited for it. It
// returns early if a flush must be waited for; goOn calls it again when the flush has ended.
// It returns the first of the jobs that are done. The caller then sends their answers: sending
// one may have to wait for the pins of any other job.
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

// flushAgain flushes the regions once more if a follow-on before j is not durable: it may have been
// stored in one of them after they had been flushed. It is j's turn, so no other job changes
// failed of the responder.
func (j *job) flushAgain() (done bool) {
	if j.status != 0 || j.flushed > len(j.targets) || j.failed == j.r.failed {
		return true
	}
	j.failed, j.flushed = j.r.failed, 0
	return j.flushRegions()
}

// next returns the target to be flushed next.
func (j *job) next() *target {
	if j.flushed < len(j.targets) {
		return &j.targets[j.flushed]
	}
	return &j.tail
}

// note records the outcome of the flush of the next target.
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

// flush flushes the next target. If done is false, goOn is called when the flush is done, perhaps
// before flush returns.
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

// answer ends the job, which no longer pins anything.
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
