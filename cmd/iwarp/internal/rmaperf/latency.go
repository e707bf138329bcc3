package rmaperf

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
	"github.com/goiwarp/iwarp/rma"
)

// A timed is an operation whose latency is measured. do returns how long it took.
type timed struct {
	name string
	do   func() (time.Duration, error)

	p50 []float64 // of each block, in microseconds
}

// least is the minimum number of times that each operation of a block is done.
const least = 5

// block does operations in turn, one at a time, for the time of a block.
func (b *bench) block(all ...*timed) error {
	took := make([][]time.Duration, len(all))
	for end := time.Now().Add(b.opts.Span); time.Now().Before(end) || len(took[0]) < least; {
		for i, t := range all {
			d, err := t.do()
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			took[i] = append(took[i], d)
		}
	}
	for i, t := range all {
		t.p50 = append(t.p50, micros(stats.Quantile(took[i], 50)))
	}
	return nil
}

// median returns the median of the p50 of all blocks.
func (t *timed) median() float64 { return stats.Median(append([]float64(nil), t.p50...)) }

// against returns the median of the ratios of the p50 of each block.
func (t *timed) against(base *timed) float64 {
	var all []float64
	for i := range t.p50 {
		all = append(all, t.p50[i]/base.p50[i])
	}
	return stats.Median(all)
}

// noteTimes notes the medians.
func (b *bench) noteTimes(all ...*timed) {
	for _, t := range all {
		b.Note("%s: p50 %.1f us", t.name, t.median())
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// succeeds returns an operation that does not fail.
func (e *end) succeeds(name string, cmd rma.Command) *timed {
	return &timed{name: name, do: func() (time.Duration, error) {
		took, failed, err := e.does(cmd)
		return took, errors.Join(failed, err)
	}}
}

// fails returns an operation that fails with outcome and reason.
func (e *end) fails(name string, cmd rma.Command, outcome rma.Outcome, reason uint16) *timed {
	return &timed{name: name, do: func() (time.Duration, error) {
		took, failed, err := e.does(cmd)
		if err == nil {
			err = expect(failed, outcome, reason)
		}
		return took, err
	}}
}

// expect checks how an operation has failed.
func expect(failed error, outcome rma.Outcome, reason uint16) error {
	var o *rma.OpError
	if !errors.As(failed, &o) || o.Outcome != outcome || o.Reason != reason {
		return fmt.Errorf("it ended with %v, and should have with %v", failed, outcome) //nolint:errorlint // it may be nil
	}
	return nil
}

// reads and writes return operations of smallSize octets.
func reads(h *rma.Handle) rma.Command {
	return rma.Command{Op: rma.Read, Handle: h, Buf: make([]byte, smallSize)}
}

func writes(h *rma.Handle) rma.Command {
	return rma.Command{Op: rma.Write, Handle: h, Buf: make([]byte, smallSize)}
}
