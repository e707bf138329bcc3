package incast

import (
	"context"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A way is a way in which the data get to the receiver.
type way struct {
	name  string
	short string // in a plot
	open  func(ctx context.Context, s *scene) error
}

// The ways: the hosts write their data at once; the receiver reads the data under a Solicitor; the
// receiver pulls the data under a Solicitor when the hosts have requested that.
var ways = []way{
	{"unsolicited Writes", "Writes", unsolicited},
	{"Reads under a Solicitor", "Reads", solicited},
	{"rma writes, sealed", "rma", sealed},
}

// A sample is one run of a way.
type sample struct {
	Way      string        `json:"way"`
	Elapsed  time.Duration `json:"elapsed"`
	P50      time.Duration `json:"victim_p50"`
	P99      time.Duration `json:"victim_p99"`
	Reads    int           `json:"victim_reads"`
	Backlog  int           `json:"backlog"`  // octets on the link, at most
	Overflow int64         `json:"overflow"` // octets that the buffer had no room for
	Granted  int64         `json:"granted"`  // by the Solicitor, at most
	Backlogs []backlog     `json:"backlogs"`
	reads    []victimRead
}

// A victimRead is a Read of a few octets: when it began, and how long it took.
type victimRead struct{ at, took time.Duration }

// A backlog is the most octets that were on the link in a millisecond.
type backlog struct {
	At     time.Duration `json:"at"`
	Octets int           `json:"octets"`
}

// run does a way once.
func (o *options) run(ctx context.Context, w way) (*sample, error) {
	s, err := o.open(ctx, w)
	if err != nil {
		return nil, err
	}
	defer s.close() //nolint:errcheck // the measurement is done
	r := &sample{Way: w.name}
	ctx, fail := context.WithCancelCause(ctx) // the first failure ends all else
	defer fail(nil)
	loaded, over := make(chan struct{}), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		<-loaded
		var err error
		if r.reads, err = s.suffer(ctx, over); err != nil {
			fail(err)
		}
	})
	watching.Go(func() { r.Backlogs = s.watch(loaded, over) })

	began := time.Now()
	var all sync.WaitGroup
	for _, transfer := range s.transfers {
		all.Go(func() {
			if err := transfer(ctx); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	r.Elapsed = time.Since(began)
	close(over)
	watching.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r.Overflow = s.link.Overflow()
	r.summarize()
	for _, b := range r.Backlogs {
		r.Backlog = max(r.Backlog, b.Octets)
	}
	if s.granted != nil {
		r.Granted = s.granted()
	}
	return r, s.check()
}

// summarize takes the quantiles of the times of the victim.
func (r *sample) summarize() {
	var times []time.Duration
	for _, v := range r.reads {
		times = append(times, v.took)
	}
	r.Reads, r.P50, r.P99 = len(times), stats.Quantile(times, 50), stats.Quantile(times, 99)
}

// suffer reads a few octets of a host that sends nothing else, one Read after the other with a pause
// between them, and returns how long each took. Without the pause, many short Reads while
// the link is idle would hide the others.
func (s *scene) suffer(ctx context.Context, over <-chan struct{}) (all []victimRead, err error) {
	first := time.Now()
	for {
		began := time.Now()
		if err := s.victim(ctx); err != nil {
			return nil, err
		}
		all = append(all, victimRead{began.Sub(first), time.Since(began)})
		select {
		case <-over:
			return all, nil
		case <-time.After(pause):
		}
	}
}

// watch follows the backlog of the link. It closes loaded when a host has begun, so that the Reads
// of the victim before that do not count.
func (s *scene) watch(loaded, over chan struct{}) (all []backlog) {
	began := time.Now()
	s.link.Backlog() // an earlier backlog does not count
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	idle := true
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-over:
			ended = true
		}
		_, most := s.link.Backlog()
		all = append(all, backlog{time.Since(began), most})
		if idle && (ended || most >= piece) {
			idle = false
			close(loaded)
		}
	}
	return all
}
