// Package placertest receives from lower layers, for tests.
package placertest

import (
	"errors"

	"github.com/goiwarp/iwarp/transport"
)

// A Waiter is a Placer that knows when it has what the test waits for.
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

// A Collector keeps what it is given, and waits for so many segments.
type Collector struct {
	transport.NoPrediction
	Want int
	Seqs []uint64
	Got  []string
	Err  error // what Segment answers in place of keeping one
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

// Segments keeps each.
func (c *Collector) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

// Enough reports whether all have come.
func (c *Collector) Enough() bool { return len(c.Got) >= c.Want }

// A Counter counts segments down from how many it waits for, and keeps none.
type Counter struct {
	transport.NoPrediction
	Left int
}

// Segment counts a segment.
func (c *Counter) Segment(uint64, []byte) error { c.Left--; return nil }

// Segments counts each.
func (c *Counter) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

// Enough reports whether all have come.
func (c *Counter) Enough() bool { return c.Left <= 0 }
