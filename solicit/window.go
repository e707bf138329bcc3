package solicit

import "time"

// A Grant says that an operation may be issued.
type Grant struct {
	ID    uint64
	Class Class
	N     int64 // the octets that count
}

// A Window bounds the octets that were asked for and have not come. It is not safe for concurrent
// use. Time does not go backwards in it: a now before that of an earlier call counts as the latter.
type Window struct {
	cfg     Config
	start   time.Time
	now     time.Duration
	table   table
	waiting [classes]queue
	queued  [classes]int // entries that wait or are overdue
	overdue queue
	large   bySize // of those that wait, if they are larger than the window is at least
	granted int64
	arbiter arbiter
	sizing  sizing
	stats   Stats
}

// New returns a window that is open. It does not fail: a configuration that Config.Check refuses is
// taken for the zero one, so call Check before with one that comes from a user.
func New(cfg Config, now time.Time) *Window {
	if cfg.Check() != nil {
		cfg = Config{}
	}
	cfg = cfg.withDefaults()
	w := &Window{cfg: cfg, start: now, arbiter: newArbiter(&cfg), sizing: newSizing(&cfg)}
	w.table.init()
	return w
}

// Max is the size of the largest operation that Enqueue takes.
func (w *Window) Max() int64 { return w.cfg.Max }

// at sets the time.
func (w *Window) at(now time.Time) { w.now = max(w.now, now.Sub(w.start)) }

// space is how many octets may be granted at the same time: no less than what waits needs.
func (w *Window) space() int64 { return max(w.sizing.size(), w.table.largest(w.large)) }

// limit is the size of the window. It shrinks only as grants return.
func (w *Window) limit() int64 { return max(w.space(), w.granted) }

// Enqueue puts an operation of n octets at the end of the queue of its class. Its id is never 0, and
// never that of another operation of this window. The errors are ErrTooLarge, ErrQueueFull and
// ErrInvalid.
func (w *Window) Enqueue(now time.Time, c Class, n int64) (id uint64, err error) {
	w.at(now)
	if c >= classes || n < 0 {
		return 0, ErrInvalid
	}
	n = max(n, MinCharge)
	if n > w.cfg.Max {
		w.stats.TooLarge++
		return 0, ErrTooLarge
	}
	if w.queued[c] >= w.cfg.MaxQueue {
		w.stats.QueueFull++
		return 0, ErrQueueFull
	}
	i := w.table.take()
	e := w.table.at(i)
	e.n, e.class, e.state, e.enqueued = n, c, waiting, w.now
	w.table.push(&w.waiting[c], i)
	w.queued[c]++
	if n > w.cfg.Min {
		w.table.add(&w.large, i)
	}
	return w.table.id(i), nil
}

// Next grants the operation whose turn it is, if it fits. Call it until it reports false after each
// Enqueue, Release, Cancel and Expire. It never grants one that has waited for longer than its
// dispatch timeout.
func (w *Window) Next(now time.Time) (Grant, bool) {
	w.at(now)
	w.sweep()
	c, ok := w.arbiter.choose(w.heads())
	if !ok {
		return Grant{}, false
	}
	i := w.waiting[c].head
	e := w.table.at(i)
	if w.granted+e.n > w.space() {
		return Grant{}, false
	}
	w.arbiter.took(c, e.n)
	w.leave(i)
	w.queued[c]--
	e.state, e.granted = granted, w.now
	w.granted += e.n
	w.stats.MaxGranted = max(w.stats.MaxGranted, w.granted)
	w.stats.Grants[c]++
	w.stats.Octets[c] += uint64(e.n)
	return Grant{ID: w.table.id(i), Class: c, N: e.n}, true
}

// heads are the sizes of those that are first in their queues, 0 where none waits.
func (w *Window) heads() (n [classes]int64) {
	for c := range n {
		n[c] = w.table.at(w.waiting[c].head).n
	}
	return n
}

// leave takes an operation out of its queue.
func (w *Window) leave(i uint32) {
	e := w.table.at(i)
	q := &w.waiting[e.class]
	w.table.remove(q, i)
	w.table.drop(&w.large, i)
	if q.head == 0 {
		w.arbiter.idle(e.class)
	}
}

// Cancel takes an operation out of the queue. It reports false if it does not wait, or not any
// more: what was granted must be released.
func (w *Window) Cancel(now time.Time, id uint64) bool {
	w.at(now)
	i := w.table.find(id)
	e := w.table.at(i)
	switch e.state {
	case waiting:
		w.leave(i)
	case overdue:
		w.table.remove(&w.overdue, i)
	default:
		return false
	}
	w.queued[e.class]--
	w.stats.Cancelled++
	w.table.give(i)
	return true
}

// Release gives back the grant of an operation that has ended, or whose octets can come no more. What
// is not granted, or not any more, is counted and ignored.
func (w *Window) Release(now time.Time, id uint64, o Outcome) {
	w.at(now)
	i := w.table.find(id)
	e := w.table.at(i)
	switch e.state {
	case granted:
		w.count(o)
		if o == OK {
			w.sizing.done(w.now, e.n, w.now-e.granted)
		}
	case held:
		w.stats.Held -= e.n
	default:
		w.stats.Unidentified++
		return
	}
	w.granted -= e.n
	w.table.give(i)
}

func (w *Window) count(o Outcome) {
	switch o {
	case OK:
	case Nack:
		w.stats.Nacked++
	case Timeout:
		w.stats.TimedOut++
	default:
		w.stats.Failed++
	}
}

// Hold says that a granted operation has timed out while its octets may still come: they count until
// Release, whose outcome does not matter then.
func (w *Window) Hold(now time.Time, id uint64) {
	w.at(now)
	e := w.table.at(w.table.find(id))
	if e.state != granted {
		w.stats.Unidentified++
		return
	}
	e.state = held
	w.stats.Held += e.n
	w.stats.TimedOut++
}
