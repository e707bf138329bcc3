package commitperf

import (
	"errors"
	"slices"
	"time"
)

// samples are times of operations.
type samples []time.Duration

func (s samples) median() time.Duration {
	slices.Sort(s)
	return s[len(s)/2]
}

// ratios holds one ratio for each turn.
type ratios []float64

func (r ratios) median() float64 {
	slices.Sort(r)
	return r[len(r)/2]
}

// An operation is done repeatedly.
type operation func() error

// time does the operation once.
func (f operation) time() (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

// times holds the times of operations that took turns.
type times struct {
	push, local, read, pull samples
	overLocal, ofPull       ratios
}

// stretch is how long the operations of one model go on before those of the other: the
// targets of the two models are separate processes, and a process that has slept long is slow at first.
const stretch = 10 * time.Millisecond

// latency takes push, empty RDMA Read, local sync and empty RDMA Read in turn, and the median
// of the ratios of the turns: a disk is faster at one moment than at the next, and
// also if it has synced a moment ago, so the same operation precedes either sync. The Read that
// counts is the one after the local sync: a processor that has slept through a sync
// sends and receives more slowly than one that has not, and a push has its sync in the
// middle. Pulls alternate with all of that, a stretch each, and their ratio is that of two
// stretches.
func (r *report) latency(push, pull *end, o options) (err error) {
	l, err := openLocal(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var t times
	for end := time.Now().Add(o.span); time.Now().Before(end); {
		if err := t.turn(push, pull, l); err != nil {
			return err
		}
	}
	r.show(map[string]any{
		"medium": o.medium, "push_us": micros(t.push), "pull_us": micros(t.pull), "local_sync_us": micros(t.local), "empty_read_us": micros(t.read),
	}, "%-6s latency: push %.1fµs, pull %.1fµs; local sync %.1fµs, empty RDMA Read %.1fµs\n",
		o.medium, micros(t.push), micros(t.pull), micros(t.local), micros(t.read))
	if o.medium == noMedium {
		r.goal("push / pull", t.ofPull.median(), mostOfPull, true)
		return nil
	}
	r.goal("push / (local sync + empty RDMA Read)", t.overLocal.median(), mostOverLocal, true)
	return nil
}

func micros(s samples) float64 { return float64(s.median()) / float64(time.Microsecond) }

// turn does a stretch of each model.
func (t *times) turn(push, pull *end, l *local) error {
	var pushes, pulls samples
	for end := time.Now().Add(stretch); time.Now().Before(end); {
		took, err := operation(pull.pull).time()
		if err != nil {
			return err
		}
		pulls = append(pulls, took)
	}
	for end := time.Now().Add(stretch); time.Now().Before(end); {
		var took [4]time.Duration
		for i, f := range []operation{push.push, push.emptyRead, l.sync, push.emptyRead} {
			var err error
			if took[i], err = f.time(); err != nil {
				return err
			}
		}
		pushes = append(pushes, took[0])
		t.local, t.read = append(t.local, took[2]), append(t.read, took[3])
		t.overLocal = append(t.overLocal, float64(took[0])/float64(took[2]+took[3]))
	}
	t.push, t.pull = append(t.push, pushes...), append(t.pull, pulls...)
	t.ofPull = append(t.ofPull, float64(pushes.median())/float64(pulls.median()))
	return nil
}
