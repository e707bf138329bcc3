package rmaperf

import (
	"errors"
	"time"
)

const (
	// graceRegions is how many regions are rotated with a grace, gracePeriod how long the grace is, and graceRate how many
	// rotations there are per second: each region gets a new key every 640 ms. A second new key within the grace would
	// end the grace of the key before.
	graceRegions = 64
	graceRate    = 100
	gracePeriod  = 400 * time.Millisecond
)

// grace rotates keys that stay valid for a while. A client does not learn of a new key before the old one
// is refused. So before it uses a region that it opened more than half of the grace ago, it opens the region again.
// No read fails.
func (b *bench) grace() (err error) {
	s := &stand{b: b}
	defer func() { err = errors.Join(err, s.close()) }()
	r, err := s.rotation(graceRegions, gracePeriod)
	if err != nil {
		return err
	}
	for _, d := range r.readers {
		d.fresh = gracePeriod / 2
	}
	var all tally
	for range b.opts.Pairs {
		if _, err := r.block(graceRate, &all); err != nil {
			return err
		}
	}
	b.Note("grace: %d Rekeys, %d reads", r.rotated, len(all.times))
	b.Marks.Most("keys rotated with a grace: reads that failed", float64(all.refused+all.other), 0, "")
	b.Marks.Most("keys rotated with a grace: connections that ended", float64(all.ended), 0, "")
	return nil
}
