package main

import (
	"context"
	"time"
)

// A visit report counts honest peers that have come, worked, and gone during the attack.
type visitReport struct {
	made    int // that were there
	refused int // that got no connection
	wrong   []error
	lost    int // of which no Event has told the end
}

// visitPause is the time between two visits, eventTime how long an Event may take.
const (
	visitPause = 50 * time.Millisecond
	eventTime  = 10 * time.Second
)

// visits has honest peers come and go until ctx ends, and one has been there.
func (f *friends) visits(ctx context.Context, addr string) <-chan visitReport {
	done := make(chan visitReport, 1)
	f.v.running.Go(func() {
		var r visitReport
		for ctx.Err() == nil || r.made == 0 && r.refused < 100 {
			f.visit(addr, &r)
			select {
			case <-ctx.Done():
			case <-time.After(visitPause):
			}
		}
		done <- r
	})
	return done
}

// visit is one of them.
func (f *friends) visit(addr string, r *visitReport) {
	ctx, cancel := context.WithTimeout(f.v.ctx, patience)
	defer cancel()
	p, err := f.dials(ctx, addr)
	if err != nil {
		r.refused++
		return
	}
	r.made++
	if err := p.operates(); err != nil {
		r.wrong = append(r.wrong, err)
	}
	if err := p.leaves(); err != nil {
		r.wrong = append(r.wrong, err)
	}
	select {
	case <-p.end:
	case <-time.After(eventTime):
		r.lost++
	}
}
