package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/goiwarp/iwarp"
)

// A thread posts operations, and takes their completions.
type thread struct {
	rig   *rig
	rnd   *rand.Rand
	burst *burst
	index int
	begin chan context.Context // a burst begins

	wrs     []iwarp.SendWR
	sges    []iwarp.SGE
	inlines []byte
	ends    [ends]progress
}

// progress records what a thread has posted at one end.
type progress struct {
	posted []step // not yet completed
	done   uint64 // completions in all bursts
	wcs    [32]iwarp.WC
}

const mostAtOnce = 256 // work requests of one call

func newThread(g *rig, b *burst, i int) *thread {
	t := &thread{
		rig: g, rnd: rand.New(rand.NewPCG(g.rnd.Uint64(), 0)), burst: b, index: i, begin: make(chan context.Context, 1),
		sges: make([]iwarp.SGE, mostAtOnce), inlines: make([]byte, mostAtOnce*inlineLen), wrs: make([]iwarp.SendWR, 0, mostAtOnce),
	}
	return t
}

// serve runs bursts.
func (t *thread) serve(done chan<- error) {
	for ctx := range t.begin {
		done <- t.all(ctx)
	}
}

// all posts everything, and waits for all completions.
func (t *thread) all(ctx context.Context) error {
	most := [...]int{1, 1 + t.rnd.IntN(8), mostAtOnce}[t.rnd.IntN(3)]
	yields := t.rnd.IntN(2) == 0
	for _, phase := range t.burst.phases[t.index] {
		for len(phase) > 0 {
			n := t.batch(phase, most)
			if err := t.post(phase[:n]); err != nil {
				return err
			}
			phase = phase[n:]
			if yields && t.rnd.IntN(4) == 0 {
				runtime.Gosched()
			}
		}
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end returns the end where a step is posted.
func (t *thread) end(st step) end {
	if st.op < 0 {
		return end(st.slot)
	}
	return t.burst.ops[st.op].at
}

// batch returns how many of the next steps to post in one call: they must be of one end.
func (t *thread) batch(phase []step, most int) int {
	n := 1
	for n < min(len(phase), most) && t.end(phase[n]) == t.end(phase[0]) {
		n++
	}
	return n
}

func (t *thread) post(steps []step) error {
	e := t.end(steps[0])
	at := &t.ends[e]
	t.wrs = t.wrs[:len(steps)]
	for i, st := range steps {
		wr := &t.wrs[i]
		*wr = iwarp.SendWR{ID: at.done + uint64(len(at.posted))}
		at.posted = append(at.posted, st)
		if st.op < 0 {
			t.extra(wr, st, e)
			continue
		}
		t.prepare(wr, i, st)
	}
	if err := t.rig.qps[e].PostSend(t.wrs...); err != nil {
		return fmt.Errorf("%v: %w", e, err)
	}
	return nil
}

// extra makes the work request of an operation that belongs to no program.
func (t *thread) extra(wr *iwarp.SendWR, st step, e end) {
	remote := t.rig.sides[e.peer().host()].slow
	switch st.op {
	case slowWrite:
		wr.Op, wr.Inline, wr.Remote = iwarp.OpRDMAWrite, t.inlines[:wordLen], remote
	case slowRead:
		h := t.rig.sides[e.host()]
		wr.Op, wr.Local, wr.Remote = iwarp.OpRDMARead, []iwarp.SGE{h.local(nothing, maxOps-1, 0, 1)}, remote.Slice(0, wordLen)
	case flush:
		wr.Op = iwarp.OpSend
	}
}

// prepare makes the i-th work request of a call.
func (t *thread) prepare(wr *iwarp.SendWR, i int, st step) {
	b := t.burst
	o, slot := &b.ops[st.op], int(st.slot)
	h, peer := t.rig.sides[o.at.host()], t.rig.sides[o.at.peer().host()]
	run := b.run(st.slot)
	wr.Op, wr.Flags = o.verb, o.flags
	v := word(run, o.value)
	switch {
	case o.writes():
		wr.Remote = peer.advertised(o.on, slot, b.words)
		t.source(wr, i, st, v)
	case o.sends():
		t.source(wr, i, st, v)
		if o.verb == iwarp.OpSendInvalidate {
			wr.Invalidate = peer.single[o.on][slot].STag()
		}
	case o.reads():
		wr.Remote = peer.advertised(o.on, slot, b.words)
		if o.on != nothing {
			t.sges[i] = h.local(o.into, int(st.op), slot, int(wr.Remote.Len)/wordLen)
			wr.Local = t.sges[i : i+1]
		}
	case o.verb == iwarp.OpLocalInvalidate:
		wr.Invalidate = h.single[o.into][slot].STag()
	case o.isAtomic():
		wr.Remote = peer.advertised(o.on, slot, 1)
		wr.Add, wr.Compare, wr.Swap = o.value, word(run, 0), v
	case o.verb == iwarp.OpCommit:
		wr.Regions = []iwarp.RemoteBuffer{peer.advertised(o.on, slot, b.words)}
		if o.store {
			wr.FollowOn = &iwarp.FollowOn{At: peer.advertised(c, slot, 1)}
			binary.BigEndian.PutUint64(wr.FollowOn.Value[:], v)
		}
	}
	if o.verb == iwarp.OpImmediate || o.verb == iwarp.OpRDMAWriteImm {
		binary.NativeEndian.PutUint64(wr.Imm[:], v)
	}
}

// source makes a block or an integer the payload, either in memory that the QP reads, or inline.
func (t *thread) source(wr *iwarp.SendWR, i int, st step, v uint64) {
	words := t.burst.words
	if t.burst.ops[st.op].on.integer() {
		words = 1
	}
	if words*wordLen <= inlineLen && t.rnd.IntN(2) == 0 {
		inline := t.inlines[i*inlineLen:][:words*wordLen]
		for off := 0; off < len(inline); off += wordLen {
			binary.NativeEndian.PutUint64(inline[off:], v)
		}
		wr.Inline = inline
		return
	}
	h := t.rig.sides[t.burst.ops[st.op].at.host()]
	fill(h.own.block(int(st.op), int(st.slot), words), v)
	t.sges[i] = h.local(nothing, int(st.op), int(st.slot), words)
	wr.Local = t.sges[i : i+1]
}

// wait waits for the completions of all that was posted.
func (t *thread) wait(ctx context.Context) error {
	for e := range ends {
		at := &t.ends[e]
		for len(at.posted) > 0 {
			n, err := t.rig.qps[e].SendCQ().Wait(ctx, at.wcs[:])
			if err != nil {
				return fmt.Errorf("%v: %d work requests do not complete: %w", e, len(at.posted), err)
			}
			for i := range n {
				if err := t.completed(at, &at.wcs[i]); err != nil {
					return fmt.Errorf("%v: %w", e, err)
				}
			}
		}
	}
	return nil
}

var errOrder = errors.New("work requests complete in another order than posted (RFC 5040 section 5.5 rule 15)")

// completed records what a completion shows.
func (t *thread) completed(at *progress, wc *iwarp.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if len(at.posted) == 0 || wc.ID != at.done {
		return errOrder
	}
	st := at.posted[0]
	at.posted = at.posted[1:]
	at.done++
	if len(at.posted) == 0 {
		at.posted = nil
	}
	if st.op < 0 {
		return nil
	}
	b := t.burst
	o, run := &b.ops[st.op], b.run(st.slot)
	switch {
	case o.reads() && b.results[st.op] >= 0:
		h := t.rig.sides[o.at.host()]
		words := b.words
		if o.on.integer() {
			words = 1
		}
		b.note(st.slot, b.results[st.op], valueIn(h.memory(o.into, int(st.op), int(st.slot), words), run))
	case o.isAtomic():
		b.note(st.slot, b.results[st.op], valueOf(wc.Old, run))
	}
	if !o.isMessage() {
		t.rig.lookAround(b, st, o.at)
	}
	return nil
}

// lookAround notes the sights of an operation. A durable value is the far host's, all else is that
// of the side itself.
func (g *rig) lookAround(b *burst, st step, at end) {
	o := &b.ops[st.op]
	for i, s := range o.sees {
		h := g.sides[at.host()]
		if s.how == durable {
			h = g.sides[far]
		}
		b.note(st.slot, b.sights[st.op][i], h.look(s, int(st.slot), b.words, b.run(st.slot)))
	}
}
