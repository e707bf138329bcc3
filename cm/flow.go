package cm

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/closed"
)

// A flow pulls items from a sequence, distributes them to goroutines, and yields the result of
// each. A separate goroutine pulls the sequence, so that a sequence that blocks delays no result.
// The caller's goroutine yields everything.
//
// A goroutine that has finished an item takes the next one, so there are never more goroutines
// than the window has room for.
type flow[In, Out any] struct {
	items   iter.Seq[In]
	window  *window
	ordered bool
	// worker returns the functions of one goroutine; end is called when the goroutine ends.
	worker func() (work func(context.Context, *task[In, Out]), end func())
	// settle is called for each task before it is yielded, and drop for tasks that are not yielded.
	settle, drop func(ctx context.Context, t *task[In, Out])
	// group returns the name of an item's group, of which at most perGroup are worked on at a time;
	// nil: there are no groups.
	group    func(*In) string
	perGroup int

	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup      // every goroutine
	ready  chan *task[In, Out] // for idle goroutines
	done   chan *task[In, Out] // closed after the last task
	failed chan struct{}       // closed when the sequence has panicked, or the caller's code has ended a goroutine
	fails  sync.Once
	panics any              // the panic value; nil: a goroutine was ended by runtime.Goexit
	held   []*task[In, Out] // by number, if ordered: tasks that wait for earlier ones
	next   uint64           // number to be yielded, if ordered

	mu     sync.Mutex
	left   int // tasks that are not done, plus one for the sequence
	idle   int // goroutines that receive from ready, or are about to
	number uint64
	spare  *task[In, Out]
	groups map[string]*group[In, Out]
}

// A task is an item in progress.
type task[In, Out any] struct {
	in     In
	out    Out
	pulled time.Time
	number uint64
	group  *group[In, Out]
	next   *task[In, Out] // in a list
}

// A group is the items that have something in common, for example a host. It exists while it
// is not empty.
type group[In, Out any] struct {
	name        string
	active      int
	first, last *task[In, Out] // the list of waiting tasks
}

// run yields everything. When it returns, or panics, no goroutine is left.
func (f *flow[In, Out]) run(ctx context.Context, yield func(In, Out) bool) {
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.ready = make(chan *task[In, Out], f.window.max)
	f.done = make(chan *task[In, Out], f.window.max)
	f.failed = make(chan struct{})
	f.left = 1
	f.window.ordered = f.ordered
	f.groups = make(map[string]*group[In, Out])
	if f.ordered {
		f.held = make([]*task[In, Out], f.window.max)
	}
	defer f.stop()
	f.all.Go(f.pull)
	for {
		select {
		case t, more := <-f.done:
			switch {
			case !more:
				return
			case f.hasFailed(): // the goroutine of t may be the one that was ended: then t has no result
				f.drop(f.ctx, t)
				return
			case !f.yield(t, yield):
				return
			}
		case <-f.failed:
			return
		}
	}
}

// stop ends the work in progress and waits for it. A panic of the sequence continues here.
func (f *flow[In, Out]) stop() {
	f.cancel()
	f.all.Wait()
	for t := range f.done {
		f.drop(f.ctx, t)
	}
	for _, t := range f.held {
		if t != nil {
			f.drop(f.ctx, t)
		}
	}
	switch {
	case !f.hasFailed():
	case f.panics == nil:
		runtime.Goexit()
	default:
		panic(f.panics)
	}
}

// pull takes the items from the sequence.
func (f *flow[In, Out]) pull() {
	returned := false
	defer func() {
		if !returned {
			f.fail(recover())
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		close(f.ready)
		f.finished()
	}()
	if f.window.pull(f.ctx) {
		for in := range f.items {
			f.begin(in)
			if !f.window.pull(f.ctx) {
				break
			}
		}
	}
	returned = true
}

// fail ends everything, and makes the caller's goroutine panic, or end.
func (f *flow[In, Out]) fail(panics any) {
	f.fails.Do(func() {
		f.panics = panics
		close(f.failed)
		f.cancel()
	})
}

// hasFailed reports whether fail was called: nothing more is yielded then.
func (f *flow[In, Out]) hasFailed() bool { return closed.Is(f.failed) }

// begin passes an item to a goroutine, or queues it in its group.
func (f *flow[In, Out]) begin(in In) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.spare
	if t == nil {
		t = new(task[In, Out])
	} else {
		f.spare = t.next
	}
	*t = task[In, Out]{in: in, pulled: time.Now(), number: f.number}
	f.number++
	f.left++
	if f.group != nil && !f.join(t) {
		return
	}
	if f.idle > 0 {
		f.idle--
		f.ready <- t
		return
	}
	f.all.Go(func() { f.work(t) })
}

// join reports whether the group of a task has room; otherwise the task waits.
func (f *flow[In, Out]) join(t *task[In, Out]) bool {
	name := f.group(&t.in)
	g := f.groups[name]
	if g == nil {
		g = &group[In, Out]{name: name}
		f.groups[name] = g
	}
	t.group = g
	if g.active < f.perGroup {
		g.active++
		return true
	}
	if g.last == nil {
		g.first = t
	} else {
		g.last.next = t
	}
	g.last = t
	return false
}

// part ends a task of a group, and returns the task that takes its place.
func (f *flow[In, Out]) part(g *group[In, Out]) *task[In, Out] {
	t := g.first
	if t == nil {
		if g.active--; g.active == 0 {
			delete(f.groups, g.name)
		}
		return nil
	}
	if g.first = t.next; g.first == nil {
		g.last = nil
	}
	t.next = nil
	return t
}

// work is one goroutine.
func (f *flow[In, Out]) work(t *task[In, Out]) {
	work, end := f.worker()
	defer end()
	defer func() {
		if t == nil {
			return
		}
		if p := recover(); p != nil {
			panic(p) // for example of QPConfig.Setup: only the program knows in which state it has left things
		}
		f.fail(nil)
		f.all.Go(func() { f.work(f.following(t)) }) // instead of this goroutine: others may wait for it
	}()
	for t != nil {
		work(f.ctx, t)
		t = f.following(t)
	}
}

// following passes a finished task on, and returns the task that its goroutine works on next; nil:
// none.
func (f *flow[In, Out]) following(t *task[In, Out]) *task[In, Out] {
	if t = f.passOn(t); t == nil {
		t = <-f.ready
	}
	return t
}

// passOn passes a finished task to the caller's goroutine, and returns a waiting task of the
// same group, if there is one.
func (f *flow[In, Out]) passOn(t *task[In, Out]) (next *task[In, Out]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.group != nil {
		next = f.part(t.group)
	}
	if next == nil {
		f.idle++
	}
	f.window.finished()
	f.done <- t // which has room for the whole window
	f.finished()
	return next
}

// finished notes that a task is done, or that the sequence has ended; f.mu is locked.
func (f *flow[In, Out]) finished() {
	if f.left--; f.left == 0 {
		close(f.done)
	}
}

// yield yields a task, if it is its turn, and the tasks that have waited for it. It reports
// false when the loop is left.
func (f *flow[In, Out]) yield(t *task[In, Out], yield func(In, Out) bool) bool {
	if !f.ordered {
		return f.give(t, yield)
	}
	n := uint64(len(f.held))
	f.held[t.number%n] = t
	for {
		t := f.held[f.next%n]
		if t == nil {
			return true
		}
		f.held[f.next%n] = nil
		f.next++
		if !f.give(t, yield) {
			return false
		}
	}
}

func (f *flow[In, Out]) give(t *task[In, Out], yield func(In, Out) bool) bool {
	f.settle(f.ctx, t)
	in, out := t.in, t.out
	f.mu.Lock()
	*t = task[In, Out]{next: f.spare}
	f.spare = t
	f.mu.Unlock()
	if !yield(in, out) {
		return false
	}
	f.window.yielded()
	return true
}
