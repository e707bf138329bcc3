package solicit

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A model is the specification of a Window, written as plainly as possible.
type model struct {
	cfg     Config
	size    func() int64 // the target
	now     time.Time
	waiting [classes][]*modelOp
	overdue []*modelOp
	running map[uint64]*modelOp
	turn    Class
	deficit [classes]int64
	stats   Stats
}

type modelOp struct {
	id       uint64
	class    Class
	n        int64
	enqueued time.Time
	held     bool
}

func (m *model) granted() (n int64) {
	for _, op := range m.running {
		n += op.n
	}
	return n
}

func (m *model) largest() (n int64) {
	for _, q := range m.waiting {
		for _, op := range q {
			n = max(n, op.n)
		}
	}
	return n
}

// queued returns how many operations of a class wait, or are overdue.
func (m *model) queued(c Class) int {
	n := len(m.waiting[c])
	for _, op := range m.overdue {
		if op.class == c {
			n++
		}
	}
	return n
}

func (m *model) enqueue(c Class, n int64) (*modelOp, error) {
	switch {
	case c >= classes || n < 0:
		return nil, ErrInvalid
	case n > m.cfg.Max:
		m.stats.TooLarge++
		return nil, ErrTooLarge
	case m.queued(c) == m.cfg.MaxQueue:
		m.stats.QueueFull++
		return nil, ErrQueueFull
	}
	op := &modelOp{class: c, n: max(n, MinCharge), enqueued: m.now}
	m.waiting[c] = append(m.waiting[c], op)
	return op, nil
}

// leave removes the operation at i from its queue.
func (m *model) leave(c Class, i int) {
	m.waiting[c] = slices.Delete(m.waiting[c], i, i+1)
	if len(m.waiting[c]) == 0 {
		m.deficit[c] = 0
	}
}

func (m *model) sweep() {
	var due []*modelOp
	for c, q := range m.waiting {
		for len(q) > 0 && m.cfg.Dispatch[c] > 0 && m.now.Sub(q[0].enqueued) > m.cfg.Dispatch[c] {
			due = append(due, q[0])
			m.leave(Class(c), 0)
			q = m.waiting[c]
		}
	}
	slices.SortStableFunc(due, func(a, b *modelOp) int {
		return a.enqueued.Add(m.cfg.Dispatch[a.class]).Compare(b.enqueued.Add(m.cfg.Dispatch[b.class]))
	})
	m.overdue = append(m.overdue, due...)
}

// choose is deficit round robin, or strict.
func (m *model) choose() (Class, bool) {
	latency, bulk := len(m.waiting[Latency]) > 0, len(m.waiting[Bulk]) > 0
	switch {
	case !latency && !bulk:
		return 0, false
	case m.cfg.Strict:
		return map[bool]Class{true: Latency, false: Bulk}[latency], true
	}
	for {
		if q := m.waiting[m.turn]; len(q) > 0 && q[0].n <= m.deficit[m.turn] {
			return m.turn, true
		}
		m.turn = m.turn.other()
		if len(m.waiting[m.turn]) > 0 {
			m.deficit[m.turn] += int64(m.cfg.Weight[m.turn]) * 64 << 10
		}
	}
}

func (m *model) next() *modelOp {
	m.sweep()
	c, ok := m.choose()
	if !ok {
		return nil
	}
	op := m.waiting[c][0]
	if m.granted()+op.n > max(m.size(), m.largest()) {
		return nil
	}
	if !m.cfg.Strict {
		m.deficit[c] -= op.n
	}
	m.leave(c, 0)
	m.running[op.id] = op
	m.stats.Grants[c]++
	m.stats.Octets[c] += uint64(op.n)
	m.stats.MaxGranted = max(m.stats.MaxGranted, m.granted())
	return op
}

func (m *model) expire() (ids []uint64) {
	m.sweep()
	for _, op := range m.overdue {
		ids = append(ids, op.id)
		m.stats.Expired++
	}
	m.overdue = nil
	return ids
}

func (m *model) cancel(id uint64) bool {
	byID := func(op *modelOp) bool { return op.id == id }
	for c, q := range m.waiting {
		if i := slices.IndexFunc(q, byID); i >= 0 {
			m.leave(Class(c), i)
			m.stats.Cancelled++
			return true
		}
	}
	if i := slices.IndexFunc(m.overdue, byID); i >= 0 {
		m.overdue = slices.Delete(m.overdue, i, i+1)
		m.stats.Cancelled++
		return true
	}
	return false
}

func (m *model) release(id uint64, o Outcome) {
	op := m.running[id]
	switch {
	case op == nil:
		m.stats.Unidentified++
	case op.held:
	case o == Nack:
		m.stats.Nacked++
	case o == Timeout:
		m.stats.TimedOut++
	case o != OK:
		m.stats.Failed++
	}
	delete(m.running, id)
}

func (m *model) hold(id uint64) {
	if op := m.running[id]; op == nil || op.held {
		m.stats.Unidentified++
	} else {
		op.held = true
		m.stats.TimedOut++
	}
}

// deadline returns when the next operation becomes overdue.
func (m *model) deadline() (at time.Time, ok bool) {
	if len(m.overdue) > 0 {
		return m.now, true
	}
	for c, q := range m.waiting {
		if d := m.cfg.Dispatch[c]; d > 0 && len(q) > 0 {
			if due := q[0].enqueued.Add(d + 1); !ok || due.Before(at) {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

func (m *model) all() Stats {
	s := m.stats
	s.Granted = m.granted()
	s.Limit = max(m.size(), m.largest(), s.Granted)
	s.Queued = m.queued(Latency) + m.queued(Bulk)
	for _, op := range m.running {
		if op.held {
			s.Held += op.n
		}
	}
	return s
}

// anyConfig returns a random configuration with a small window, so that many operations wait.
func anyConfig(t *rapid.T) Config {
	cfg := Config{
		Weight:   [2]int{rapid.IntRange(0, 5).Draw(t, "latency"), rapid.IntRange(0, 5).Draw(t, "bulk")},
		Strict:   rapid.Bool().Draw(t, "strict"),
		MaxQueue: rapid.IntRange(1, 20).Draw(t, "queue"),
	}
	for c := range cfg.Dispatch {
		cfg.Dispatch[c] = rapid.SampledFrom([]time.Duration{0, time.Millisecond, 10 * time.Millisecond}).Draw(t, "dispatch")
	}
	if rapid.Bool().Draw(t, "fixed") {
		cfg.Fixed = rapid.Int64Range(MinCharge, 1<<20).Draw(t, "size")
		return cfg
	}
	cfg.Min = rapid.Int64Range(MinCharge, 1<<18).Draw(t, "min")
	cfg.Start = rapid.Int64Range(cfg.Min, 1<<19).Draw(t, "start")
	cfg.Max = rapid.Int64Range(cfg.Start, 1<<20).Draw(t, "max")
	return cfg
}

// TestSOL_1_2_3_4_5_6_7_8_9_10_11_12_Model compares a Window with the model, in random sequences of calls.
func TestSOL_1_2_3_4_5_6_7_8_9_10_11_12_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		require.NoError(t, cfg.Check())
		w := New(cfg, epoch)
		m := &model{cfg: cfg.withDefaults(), size: w.sizing.size, now: epoch, running: make(map[uint64]*modelOp), turn: Bulk}
		var ids []uint64
		seen := make(map[uint64]bool)
		anyID := func(t *rapid.T) uint64 {
			if len(ids) == 0 || rapid.IntRange(0, 19).Draw(t, "unknown") == 0 {
				return rapid.Uint64().Draw(t, "id")
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		next := func(t *rapid.T) bool {
			g, ok := w.Next(m.now)
			op := m.next()
			require.Equal(t, op != nil, ok)
			if ok {
				require.Equal(t, Grant{op.id, op.class, op.n}, g)
			}
			return ok
		}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": func(t *rapid.T) {
				c := Class(rapid.IntRange(0, 40).Draw(t, "class") % 20 % 3)
				n := rapid.OneOf(rapid.Int64Range(-1, 100), rapid.Int64Range(0, 1<<18), rapid.Int64Range(0, m.cfg.Max+10)).Draw(t, "n")
				id, err := w.Enqueue(m.now, c, n)
				op, want := m.enqueue(c, n)
				require.Equal(t, want, err)
				if err == nil {
					require.False(t, seen[id], "an id comes twice")
					op.id, seen[id], ids = id, true, append(ids, id)
				}
			},
			"next": func(t *rapid.T) { next(t) },
			"all": func(t *rapid.T) {
				for next(t) {
				}
			},
			"release": func(t *rapid.T) {
				id, o := anyID(t), Outcome(rapid.IntRange(0, 4).Draw(t, "outcome"))
				w.Release(m.now, id, o)
				m.release(id, o)
			},
			"finish": func(t *rapid.T) {
				for _, id := range ids {
					if op := m.running[id]; op != nil && !op.held {
						w.Release(m.now, id, OK)
						m.release(id, OK)
						break
					}
				}
			},
			"hold": func(t *rapid.T) {
				id := anyID(t)
				w.Hold(m.now, id)
				m.hold(id)
			},
			"cancel": func(t *rapid.T) {
				id := anyID(t)
				require.Equal(t, m.cancel(id), w.Cancel(m.now, id))
			},
			"expire": func(t *rapid.T) { require.Equal(t, m.expire(), w.Expire(m.now, nil)) },
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Millisecond)).Draw(t, "wait")))
				w.Expire(m.now, nil)
				m.expire()
			},
			"": func(t *rapid.T) {
				s := w.Stats()
				require.LessOrEqual(t, s.Granted, s.Limit)
				s.MinRTT = 0
				require.Equal(t, m.all(), s)
				at, ok := w.Deadline()
				wantAt, wantOK := m.deadline()
				require.Equal(t, wantOK, ok)
				require.Equal(t, wantAt, at)
			},
		})
	})
}
