package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A session runs one program over one rig.
type session struct {
	rig       *rig
	burst     burst
	threads   []*thread
	observers []*observer
	done      chan error
	tasks     sync.WaitGroup
	counts    []uint64 // of runs, by key
	runs      uint64
}

// stuck is the maximum duration of a burst.
const stuck = time.Minute

func newSession(g *rig, k *compiled) *session {
	q := &session{rig: g, done: make(chan error), counts: make([]uint64, 1<<(valueBits*len(k.names)))}
	q.burst.compiled = k
	var used [ends]bool
	for i := range k.threads {
		q.threads = append(q.threads, newThread(g, &q.burst, i))
	}
	for _, o := range k.ops {
		used[o.at] = used[o.at] || o.verb != 0
	}
	for e, is := range used {
		if is {
			q.observers = append(q.observers, newObserver(g, &q.burst, end(e).peer()))
		}
	}
	for _, t := range q.threads {
		q.tasks.Go(func() { t.serve(q.done) })
	}
	for _, v := range q.observers {
		q.tasks.Go(func() { v.serve(q.done) })
	}
	return q
}

// end ends the goroutines.
func (q *session) end() {
	for _, t := range q.threads {
		close(t.begin)
	}
	for _, v := range q.observers {
		close(v.begin)
	}
	q.tasks.Wait()
}

// run makes n runs. After an error the rig cannot be used.
func (q *session) run(ctx context.Context, n int) error {
	for n > 0 {
		q.burst.plan(q.rig.rnd, q.rig.layer.geometry, n)
		if err := q.once(ctx); err != nil {
			return err
		}
		n -= q.burst.n
	}
	return nil
}

// once runs one burst.
func (q *session) once(ctx context.Context) error {
	b := &q.burst
	b.first = q.rig.next
	q.rig.next += uint64(b.n)
	if err := q.prepare(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	for _, v := range q.observers {
		v.begin <- ctx
	}
	for _, t := range q.threads {
		t.begin <- ctx
	}
	var first error
	for range len(q.threads) + len(q.observers) {
		if err := <-q.done; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	if first != nil {
		return first
	}
	h := q.rig.sides[far]
	for slot := range b.n {
		for i, s := range b.program.final {
			b.note(int16(slot), b.final[i], h.look(s, slot, b.words, b.run(int16(slot))))
		}
		q.counts[b.key(slot)]++
	}
	q.runs += uint64(b.n)
	return q.cleanUp()
}

// prepare posts the receives, and makes the integers and regions of the runs.
func (q *session) prepare() error {
	b := &q.burst
	for slot := range b.n {
		for _, v := range []variable{c, d} {
			if b.uses[v] {
				q.rig.sides[far].vars.integer(v, slot).Store(word(b.run(int16(slot)), 0))
			}
		}
		if b.uses[w] {
			if err := q.rig.sides[far].registerSingle(w, slot); err != nil {
				return err
			}
		}
		if b.uses[s] {
			if err := q.rig.sides[near].registerSingle(s, slot); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, v := range q.observers {
		errs = append(errs, v.post())
	}
	return errors.Join(errs...)
}

// cleanUp closes the regions of the runs.
func (q *session) cleanUp() error {
	var errs []error
	for slot := range q.burst.n {
		if q.burst.uses[w] {
			errs = append(errs, q.rig.sides[far].closeSingle(w, slot))
		}
		if q.burst.uses[s] {
			errs = append(errs, q.rig.sides[near].closeSingle(s, slot))
		}
	}
	return errors.Join(errs...)
}
