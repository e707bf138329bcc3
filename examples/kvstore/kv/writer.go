package kv

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of changes, also for clients.
var (
	// ErrUnavailable is the error of a Put or Delete that has no effect, because a replica cannot be
	// reached, and of a Get that no replica can answer now.
	ErrUnavailable = errors.New("kv: not available")
	// ErrUncertain is the error of a Put or Delete that may have taken effect, or may do so later.
	ErrUncertain = errors.New("kv: it is not known whether the change was made, or will be")
)

// A work is a requested change.
type work struct {
	change
	t    *table
	it   *item
	done func(error) // called once, then set to nil
}

func (w *work) end(err error) {
	if w.done != nil {
		w.done(err)
		w.done = nil
	}
}

func (w *work) logged() uint64 { return uint64(changeLen(len(w.key), len(w.value))) }

// A writer makes all changes of a primary, one batch after the other: in its log, in the backup's log, in
// the backup's memory, and in its own memory. Only its goroutine uses the log and the link.
type writer struct {
	r      *Replica
	log    *logFile
	link   *link // nil: there is none
	buf    []byte
	wake   chan struct{} // holds a token if there may be work
	behind []*work       // changes in the log that the backup may not have, in order

	// The Replica's lock guards these.
	queue  []*work
	used   uint64 // the minimum length of the log: for the changes that count, and those in progress
	linked bool   // the backup has everything that is in the log
}

const (
	maxBatch    = 1 << 20 // octets of one batch of changes
	firstRelink = 20 * time.Millisecond
	lastRelink  = time.Second
)

func newWriter(r *Replica) *writer {
	w := &writer{r: r, log: r.log, wake: make(chan struct{}, 1)}
	for _, t := range r.tables {
		for _, it := range t.items {
			w.used += it.logged()
		}
	}
	return w
}

// submit begins a change. done is called when the change was made or has failed. If submit fails, nothing
// has changed, and done is not called.
func (w *writer) submit(t *table, c change, done func(error)) error {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &work{change: c, t: t, done: done}
	switch {
	case r.err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, r.err)
	case !w.linked:
		return fmt.Errorf("%w: the primary has no connection to the backup", ErrUnavailable)
	case c.deletes && t.items[string(c.key)] == nil:
		done(nil) // neither replica has the key
		return nil
	}
	limit := w.log.half - latestLen
	if !c.deletes {
		limit -= maxChange // so that a Delete is always possible
	}
	if w.used+k.logged() > limit {
		return errLogFull
	}
	if err := k.reserve(); err != nil {
		return err
	}
	w.used += k.logged()
	r.version++
	k.version, k.entry = r.version, k.it.entry
	t.begin(k.it)
	w.queue = append(w.queue, k)
	select {
	case w.wake <- struct{}{}:
	default: // there is a token already
	}
	return nil
}

// reserve finds the item, and room for the value.
func (w *work) reserve() (err error) {
	if w.deletes {
		w.it = w.t.items[string(w.key)]
		return nil
	}
	w.it, w.block, err = w.t.reserve(w.key, storedLen(len(w.key), len(w.value)))
	return err
}

// run makes changes until ctx ends.
func (w *writer) run(ctx context.Context) {
	defer func() {
		w.unlink()
		w.refuse(ErrUnavailable)
	}()
	wait := firstRelink
	told := "" // the last logged reason why there is no connection to the backup
	for ctx.Err() == nil {
		err := w.relink(ctx)
		if wait = min(2*wait, lastRelink); err == nil {
			wait, told = firstRelink, ""
		}
		for err == nil {
			err = w.next(ctx)
		}
		w.unlink()
		if w.r.Err() != nil {
			return
		}
		if why := err.Error(); why != told && ctx.Err() == nil {
			w.r.cfg.Logger.Warn("no connection to the backup, which is tried again", "err", err)
			told = why
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// unlink ends the connection to the backup. The backup may have any part of the log.
func (w *writer) unlink() {
	w.r.mu.Lock()
	w.linked = false
	w.r.mu.Unlock()
	if w.link != nil {
		w.link.close()
		w.link = nil
	}
	for _, k := range w.behind {
		k.end(ErrUncertain)
	}
	w.refuse(fmt.Errorf("%w: the primary has lost its connection to the backup", ErrUnavailable))
}

// refuse gives up the changes that are not in the log, the last one first, so that each restores the item
// as it was.
func (w *writer) refuse(err error) {
	w.r.mu.Lock()
	queue := w.queue
	w.queue = nil
	for _, k := range slices.Backward(queue) {
		w.used -= k.logged()
		if !k.deletes {
			k.t.blocks.give(k.block, orderOf(storedLen(len(k.key), len(k.value))))
		}
		k.t.undo(k.it)
	}
	w.r.mu.Unlock()
	for _, k := range queue {
		k.end(err)
	}
}

// relink connects to the backup, and brings it up to date.
func (w *writer) relink(ctx context.Context) (err error) {
	if w.link, err = dialBackup(ctx, w.r); err != nil {
		return err
	}
	from, err := w.link.theirs.missing(w.log)
	if err != nil {
		return err
	}
	if err := w.send(ctx, from); err != nil {
		return err
	}
	w.applied()
	if err := w.r.serve(); err != nil {
		w.r.fail(err)
		return err
	}
	w.r.mu.Lock()
	w.linked = true
	w.r.mu.Unlock()
	return nil
}

// send sends the backup the missing part of the log, and waits until the backup shows it to clients.
func (w *writer) send(ctx context.Context, from mark) error {
	for {
		n := min(w.log.mark.tail-from.tail, maxBatch)
		b, err := w.log.read(from, int(n))
		if err != nil {
			return err
		}
		if err := w.link.write(ctx, w.log.at(from), b); err != nil {
			return err
		}
		if from.tail += n; from.tail == w.log.mark.tail {
			break
		}
	}
	return w.link.commit(ctx, w.log)
}

// next makes one batch of changes.
func (w *writer) next(ctx context.Context) error {
	batch, octets := w.take()
	if len(batch) == 0 {
		select {
		case <-w.wake:
			return nil
		case <-w.link.ended():
			return errors.New("kv: the backup has ended the connection")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if octets > w.log.room() {
		if err := w.compact(ctx); err != nil {
			w.takeBack(batch)
			return err
		}
	}
	w.buf = w.buf[:0]
	for _, k := range batch {
		w.buf = k.append(w.buf, w.log.mark.generation)
	}
	from := w.log.mark
	w.behind = batch // in the log from here on: after a failed write the disk may still have it
	if err := w.log.append(ctx, w.buf); err != nil {
		w.r.fail(fmt.Errorf("kv: the log of the primary: %w", err))
		return err
	}
	w.r.cfg.reached(stageLogged)
	if err := w.link.write(ctx, w.log.at(from), w.buf); err != nil {
		return err
	}
	if err := w.link.commit(ctx, w.log); err != nil {
		return err
	}
	w.applied()
	return nil
}

// take takes a batch from the queue.
func (w *writer) take() (batch []*work, octets uint64) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	n := 0
	for n < len(w.queue) && (n == 0 || octets+w.queue[n].logged() <= maxBatch) {
		octets += w.queue[n].logged()
		n++
	}
	batch = slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	return batch, octets
}

// takeBack returns a batch that is not in the log to the front of the queue.
func (w *writer) takeBack(batch []*work) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.queue = append(batch, w.queue...)
}

// applied makes in memory the changes that the backup has made, and acknowledges them.
func (w *writer) applied() {
	w.r.mu.Lock()
	for _, k := range w.behind {
		if k.it.live {
			w.used -= k.it.logged()
		}
		if k.deletes {
			w.used -= k.logged()
		}
		k.t.finish(k.it, &k.change)
	}
	w.r.mu.Unlock()
	for _, k := range w.behind {
		k.end(nil)
	}
	w.behind = nil
}

// compact begins the next generation of the log, with the changes that count, and sends it to the
// backup, which has all changes of the current one.
func (w *writer) compact(ctx context.Context) error {
	next := mark{generation: w.log.mark.generation + 1}
	if next.generation > maxGeneration {
		err := errors.New("kv: the log has had as many generations as it can")
		w.r.fail(err)
		return err
	}
	var buf []byte
	for _, k := range w.counting() {
		buf = k.append(buf, next.generation)
	}
	if _, err := w.log.file.WriteAt(buf, w.log.at(next)); err != nil {
		w.r.fail(err)
		return err
	}
	from := next
	next.tail = uint64(len(buf))
	if err := w.log.begin(ctx, next); err != nil {
		w.r.fail(err)
		return err
	}
	return w.send(ctx, from)
}

// counting returns the changes that count: first the latest version with the length of them all, and then all existing values
// in the order of their versions.
func (w *writer) counting() []change {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	var all []change
	octets := latestLen
	for _, t := range w.r.tables {
		for _, it := range t.items {
			key := []byte(it.key)
			if value, ok := t.get(nil, key); ok {
				octets += uint64(changeLen(len(key), len(value)))
				all = append(all, change{tenant: t.id, version: it.version, entry: it.entry, block: it.block, key: key, value: value})
			}
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	first := change{deletes: true, tenant: noTenant, version: w.r.version, key: []byte(latestKey), value: binary.LittleEndian.AppendUint64(nil, octets)}
	return slices.Insert(all, 0, first)
}
