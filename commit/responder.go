package commit

import (
	"context"
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

	// Task returns a function that runs f, which may wait for a disk, each time that it is
	// called: in a goroutine of its own, or in the one that receives when that has nothing
	// more to receive. receiving: that one is the caller. There are never more of them at
	// once than the stream's IRD. nil: the peer's requests are refused.
	Task func(f func()) (start func(receiving bool))

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
	if c.Task != nil {
		r := &responder{Config: c}
		r.next.L = &r.mu
		x.Serve = r.serve
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
	queued uint64    // jobs that have got a turn
	ended  uint64    // of them, those that are done: always the first ones
	next   sync.Cond // ended has changed
}

// A job is one request that is being served.
type job struct {
	r       *responder
	in      *rdmap.Inbound
	turn    uint64
	request Request
	targets []target             // of the regions, pinned
	tail    target               // of the follow-on, pinned if there is one
	start   func(receiving bool) // do, where it may wait: see Config.Task
	replace func(uint64) uint64
	reply   [ResponseLen]byte
}

// A target is what a region of a request names. Without octets it has no region.
type target struct {
	region *stag.Region
	off, n uint64
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
		r.give(j)
		in.Fail(err)
		return
	}
	r.Stats.Commits.Add(1)
	if r.Limits.Octets > 0 && j.request.Total() > r.Limits.Octets {
		j.unpin()
		j.answer(MakeStatus(NoRegion, Limit))
		return
	}
	if first := r.queue(j); first && !j.mayBlock() {
		j.do()
		return
	}
	j.start(in.Receiving())
}

// queue gives j its turn. first: no other job is before it.
func (r *responder) queue(j *job) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.turn = r.queued
	r.queued++
	return j.turn == r.ended
}

// await waits for j's turn.
func (r *responder) await(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ended != j.turn {
		r.next.Wait()
	}
}

func (r *responder) endTurn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	r.next.Broadcast()
}

func (r *responder) take() *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		j := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return j
	}
	j := &job{r: r}
	j.start = r.Task(j.do)
	j.replace = func(uint64) uint64 { return j.request.FollowOn.Value }
	return j
}

func (r *responder) give(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.in = nil
	r.spare = append(r.spare, j)
}

// open reads the request, and finds and pins what it names: an Invalidate waits until
// the flush does not touch the octets any more.
func (j *job) open() *transport.Fault {
	if fault := j.request.Parse(j.in.Payload()); fault != nil {
		return fault
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
	f := j.request.FollowOn
	var fault *transport.Fault
	if j.tail, fault = j.r.find(f.STag, f.TO, stag.AtomicLen); fault != nil {
		return fault
	}
	if !j.tail.region.Aligned(j.tail.off) {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "follow-on to %v at TO %#x, which is not aligned", f.STag, f.TO)
	}
	return nil
}

func (r *responder) find(st stag.STag, to uint64, n uint32) (target, *transport.Fault) {
	g, off, v := r.Table.Pin(r.Scope, st, stag.RemoteWrite, to, int(n))
	if v != stag.None {
		return target{}, transport.Faultf(rdmap.ProtectionCode(v), "%v: Commit of %d octets of %v at TO %#x", v, n, st, to)
	}
	return target{g, off, uint64(n)}, nil
}

// mayBlock reports whether there is something to wait for.
func (j *job) mayBlock() bool {
	for i := range j.targets {
		if j.targets[i].mayBlock() {
			return true
		}
	}
	return j.tail.mayBlock()
}

func (t *target) mayBlock() bool {
	if t.region == nil || t.region.Flusher() == nil {
		return false
	}
	p, ok := t.region.Flusher().(Prompter)
	return !ok || !p.Prompt(int64(t.off), int64(t.n))
}

// do does what the request asks for.
func (j *job) do() {
	st := j.flushRegions()
	j.r.await(j)
	if st == 0 && j.tail.region != nil {
		st = MakeStatus(NoRegion, j.followOn())
	}
	j.unpin()
	j.r.endTurn() // before the answer: who sends it may have to wait for a later job's pins
	j.answer(st)
}

func (j *job) flushRegions() Status {
	for i := range j.targets {
		if c := j.flush(&j.targets[i]); c != OK {
			return MakeStatus(i, c)
		}
	}
	return 0
}

func (j *job) followOn() Code {
	if j.r.Strict && j.tail.region.Flusher() == nil {
		return NotDurable
	}
	if _, err := j.r.Table.Update(j.tail.region, j.tail.off, j.replace); err != nil {
		return FollowOnFailed
	}
	if j.flush(&j.tail) != OK {
		return FollowOnFailed
	}
	return OK
}

func (j *job) flush(t *target) Code {
	if t.region == nil {
		return OK
	}
	f := t.region.Flusher()
	if f == nil {
		j.r.Stats.NotDurable.Add(1)
		if j.r.Strict {
			return NotDurable
		}
		return OK
	}
	return codeOf(f.Flush(context.Background(), int64(t.off), int64(t.n)))
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
