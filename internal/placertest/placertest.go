// Package placertest receives from lower layers, for tests.
package placertest

import (
	"errors"

	"github.com/goiwarp/iwarp/transport"
)

// A Waiter is a Placer that knows when it has received what the test waits for.
type Waiter interface {
	transport.Placer
	Enough() bool
}

// Receive receives until the Placer has enough, or there is an error.
func Receive(l transport.LLP, p Waiter) error {
	for {
		if err := l.Receive(p, transport.Park); err != nil && !errors.Is(err, transport.ErrWoken) {
			return err
		}
		if p.Enough() {
			return nil
		}
	}
}

// A Collector keeps the segments that it is given, and waits for Want of them.
type Collector struct {
	transport.NoPrediction
	Want int
	Seqs []uint64
	Got  []string
	Err  error // what Segment returns instead of keeping a segment
}

// Segment keeps a segment.
func (c *Collector) Segment(seq uint64, ulpdu []byte) error {
	if c.Err != nil {
		return c.Err
	}
	c.Seqs = append(c.Seqs, seq)
	c.Got = append(c.Got, string(ulpdu))
	return nil
}

// Segments keeps each segment of a batch.
func (c *Collector) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

// Enough reports whether all segments have arrived.
func (c *Collector) Enough() bool { return len(c.Got) >= c.Want }

// A Counter counts down the segments that it waits for, and keeps none.
type Counter struct {
	transport.NoPrediction
	Left int
}

// Segment counts a segment.
func (c *Counter) Segment(uint64, []byte) error { c.Left--; return nil }

// Segments counts each segment of a batch.
func (c *Counter) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

// Enough reports whether all segments have arrived.
func (c *Counter) Enough() bool { return c.Left <= 0 }
