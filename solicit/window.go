package solicit

import "time"

// A Grant is the permission to issue an operation.
type Grant struct {
	ID    uint64
	Class Class
	N     int64 // charged octets
}

// A Window bounds the octets that were requested and have not arrived. It is not safe for concurrent
// use. Its time does not go backwards: a now before that of an earlier call counts as the latter.
type Window struct {
	cfg     Config
	start   time.Time
	now     time.Duration
	table   table
	waiting [classes]queue
	queued  [classes]int // entries that wait or are overdue
	overdue queue
	large   bySize // waiting entries that are larger than Config.Min
	granted int64
	arbiter arbiter
	sizing  sizing
	stats   Stats
}

// New returns a Window. It does not fail: it treats a configuration that Config.Check refuses as the
// zero Config, so call Check first for a configuration that comes from a user.
func New(cfg Config, now time.Time) *Window {
	if cfg.Check() != nil {
		cfg = Config{}
	}
	cfg = cfg.withDefaults()
	w := &Window{cfg: cfg, start: now, arbiter: newArbiter(&cfg), sizing: newSizing(&cfg)}
	w.table.init()
	return w
}

// Max returns the size of the largest operation that Enqueue accepts.
func (w *Window) Max() int64 { return w.cfg.Max }

// at sets the time.
func (w *Window) at(now time.Time) { w.now = max(w.now, now.Sub(w.start)) }

// space returns how many octets may be granted at the same time: at least the largest waiting entry.
func (w *Window) space() int64 { return max(w.sizing.size(), w.table.largest(w.large)) }

// limit returns the size of the window. It shrinks only as grants return.
func (w *Window) limit() int64 { return max(w.space(), w.granted) }

// Enqueue appends an operation of n octets to the queue of its class. Its id is never 0, and never the
// id of another operation of this Window. The errors are ErrTooLarge, ErrQueueFull and ErrInvalid.
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

// Next grants the operation whose turn it is, if it fits. After each Enqueue, Release, Cancel and
// Expire, call Next until it reports false. It never grants an operation that has waited longer than
// its dispatch timeout.
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

// heads returns the sizes of the first operations of the queues, 0 for an empty queue.
func (w *Window) heads() (n [classes]int64) {
	for c := range n {
		n[c] = w.table.at(w.waiting[c].head).n
	}
	return n
}

// leave removes an operation from its queue.
func (w *Window) leave(i uint32) {
	e := w.table.at(i)
	q := &w.waiting[e.class]
	w.table.remove(q, i)
	w.table.drop(&w.large, i)
	if q.head == 0 {
		w.arbiter.idle(e.class)
	}
}

// Cancel removes an operation from its queue. It reports false if the operation does not wait, or no
// longer waits: a granted operation must be released.
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

// Release returns the grant of an operation that has ended, or whose octets can no longer arrive. A
// call for an operation that is not, or no longer, granted is counted and ignored.
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

// Hold notes that a granted operation has timed out while its octets may still arrive: they count
// until Release, whose outcome is then ignored.
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
