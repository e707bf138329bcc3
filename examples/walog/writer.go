package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A writer appends records to the logs of its targets. There is only one at a time: a writer must
// have ended before the next one starts. A target first ends the connection of the previous writer, whose
// octets in flight may contain an older mark.
//
// A record is written when a majority has it. A new writer takes a term that no other writer has had:
// a majority has recorded it, so the next writer learns of it. The writer asks that majority, of which
// at least one target has every record, and adopts the log with the best mark. Before it
// writes, it makes a majority adopt that log under its term: a target that was away meanwhile is
// then recognised by its old term. A target keeps its old term, and all records that it shares
// with that log, until it has the whole log: so a writer may end at any time.
type writer struct {
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	log   *iwarp.MR // of mem
	mem   []byte    // the intended contents of the file
	links []*link
	term  uint16
	base  uint64 // the end of the adopted log
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	end     uint64 // of the appended records
	number  uint64 // of the next record
}

// openWriter makes a writer of a log of size octets, and recovers the existing log.
func openWriter(ctx context.Context, targets []string, size int64) (*writer, error) {
	w := newWriter(targets, size)
	ctx, w.stop = context.WithCancel(ctx)
	err := w.register()
	if err == nil {
		err = w.recover(ctx)
	}
	if err != nil {
		_ = w.close()
		return nil, err
	}
	return w, nil
}

func newWriter(targets []string, size int64) *writer {
	w := &writer{end: start, mem: make([]byte, size)}
	w.changed.L = &w.mu
	for _, addr := range targets {
		w.links = append(w.links, &link{w: w, addr: addr, mem: make([]byte, mostAtOnce)})
	}
	return w
}

func (w *writer) register() (err error) {
	if w.rnic, err = iwarp.Open(nil); err != nil {
		return err
	}
	if w.pd, err = w.rnic.AllocPD(); err != nil {
		return err
	}
	if w.log, err = w.pd.RegisterMR(w.mem, stag.LocalWrite, nil); err != nil {
		return err
	}
	for _, l := range w.links {
		if l.in, err = w.pd.RegisterMR(l.mem, stag.LocalWrite, nil); err != nil {
			return err
		}
	}
	return nil
}

// room returns the length of the file.
func (w *writer) room() uint64 { return uint64(len(w.mem)) }

func (w *writer) majority() int { return len(w.links)/2 + 1 }

// recover finds the log that earlier writers have left, starts the links, and waits until a
// majority has it.
func (w *writer) recover(ctx context.Context) error {
	marks, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for i, l := range w.links {
		w.tasks.Go(func() { l.run(ctx, marks[i]) })
	}
	return w.await(ctx, w.end)
}

// begin connects, takes a term and adopts a log. It returns the marks of the connected targets.
func (w *writer) begin(ctx context.Context) ([]mark, error) {
	marks, last, err := w.meet(ctx)
	if err != nil {
		return nil, err
	}
	w.term = last + 1
	if w.term == 0 {
		return nil, errors.New("no term is left")
	}
	var best mark
	for i, l := range w.links {
		if l.qp == nil {
			continue
		}
		if err := l.claim(ctx, w.term); err != nil {
			l.hangUp()
			continue
		}
		if marks[i].word() > best.word() {
			best = marks[i]
		}
	}
	if err := w.enough(); err != nil {
		return nil, err
	}
	return marks, w.adopt(ctx, marks, best)
}

// meet connects, and returns the marks of the connected targets, and the latest term that one of them has recorded.
//
// A mark with a later term than that is damaged, and must not be the best one. For a majority records a term, or a later one,
// before any mark contains it, and a target of that majority is connected. (A target that joins later also records the term
// before its own mark contains it.) The writer ends before it has changed anything: once later terms are recorded, the damage
// can no longer be detected.
//
// If a recorded term is damaged, it may be too late, and then so are the terms that follow. Or it is too early: then another
// target of that majority returns the right one, and while none is connected a writer ends here, which loses nothing. No mark
// contains a term that only a minority has recorded, for a writer that reached no more. Up to such a term, damage is not detected.
func (w *writer) meet(ctx context.Context) (marks []mark, last uint16, err error) {
	marks = make([]mark, len(w.links))
	for i, l := range w.links {
		m, term, err := l.dial(ctx)
		if err != nil {
			l.hangUp()
			continue
		}
		marks[i] = m
		last = max(last, term)
	}
	if err := w.enough(); err != nil {
		return nil, 0, err
	}
	for i, l := range w.links {
		if marks[i].term > last {
			return nil, 0, fmt.Errorf("target %s: the mark has term %d, and %d is the last one that was noted: the file is damaged, if no target is missing",
				l.addr, marks[i].term, last)
		}
	}
	return marks, last, nil
}

// enough returns an error if no majority is connected.
func (w *writer) enough() error {
	n := 0
	for _, l := range w.links {
		if l.qp != nil {
			n++
		}
	}
	if n < w.majority() {
		return fmt.Errorf("%d of %d targets can be reached", n, len(w.links))
	}
	return nil
}

// adopt adopts the log with the best mark. Logs with equal marks are equal, so one can be used if another is damaged.
func (w *writer) adopt(ctx context.Context, marks []mark, best mark) error {
	var errs []error
	for i, l := range w.links {
		if l.qp == nil || marks[i] != best {
			continue
		}
		err := w.adoptFrom(ctx, l, best)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("target %s: %w", l.addr, err))
	}
	return errors.Join(errs...)
}

// adoptFrom adopts a target's log.
func (w *writer) adoptFrom(ctx context.Context, l *link, m mark) error {
	w.base = start
	if m.tail <= start { // a new file
		return nil
	}
	if m.tail > w.room() {
		return errors.New("its log is longer than ours can be")
	}
	n := int(m.tail - start)
	err := l.qp.RDMARead(ctx, w.log.Slice(start, n), l.at(start, n))
	if err != nil {
		return err
	}
	log := w.mem[start:m.tail]
	if w.number, err = checkLog(log); err != nil {
		return err
	}
	w.base, w.end = m.tail, m.tail
	return nil
}

// append writes a record and returns when a majority has it.
func (w *writer) append(ctx context.Context, data []byte) error {
	end, err := w.put(data)
	if err != nil {
		return err
	}
	return w.await(ctx, end)
}

func (w *writer) put(data []byte) (end uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := putRecord(w.mem[w.end:], w.number, data)
	if err != nil {
		return 0, err
	}
	w.number++
	w.end += uint64(n)
	w.changed.Broadcast()
	return w.end, nil
}

// await waits until a majority has the log up to end.
func (w *writer) await(ctx context.Context, end uint64) error {
	return w.when(ctx, func() bool { return w.durable() >= end })
}

// next waits until the log extends beyond tail, and returns the end of the records to write at
// once, at least one.
func (w *writer) next(ctx context.Context, tail uint64) (end uint64, err error) {
	err = w.when(ctx, func() bool { end = w.end; return end > tail })
	if end > tail+mostAtOnce {
		n := wholeRecords(w.mem[tail : tail+mostAtOnce])
		if n == 0 {
			n = recordLen(int(binary.LittleEndian.Uint32(w.mem[tail:])))
		}
		end = tail + uint64(n)
	}
	return end, err
}

// when waits for a change that makes ok true.
func (w *writer) when(ctx context.Context, ok func() bool) error {
	defer context.AfterFunc(ctx, w.wake)()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ok() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.changed.Wait()
	}
	return nil
}

func (w *writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

// durable returns the tail that a majority has. w.mu must be held.
func (w *writer) durable() uint64 {
	tails := make([]uint64, 0, len(w.links))
	for _, l := range w.links {
		tails = append(tails, l.acked)
	}
	slices.Sort(tails)
	return tails[len(tails)-w.majority()]
}

func (w *writer) acknowledge(l *link, tail uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.acked = tail
	w.changed.Broadcast()
}

// settle waits until all targets have everything.
func (w *writer) settle(ctx context.Context) error {
	return w.when(ctx, func() bool {
		return !slices.ContainsFunc(w.links, func(l *link) bool { return l.acked < w.end })
	})
}

func (w *writer) close() error {
	w.stop()
	w.tasks.Wait()
	if w.rnic == nil {
		return nil
	}
	return w.rnic.Close()
}
