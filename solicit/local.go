package solicit

import "time"

const (
	startDepth = 16
	mostDepth  = 1024
	// issueTarget is how long operations should wait for their grant, so that the queue is never empty
	// and never long.
	issueTarget = 5 * time.Millisecond
)

// A local controls the length of the queue in front of the window by the delay there, which says nothing
// about the path.
type local struct {
	depth int           // operations
	delay time.Duration // smoothed
	cut   time.Duration
}

func newLocal() local { return local{depth: startDepth} }

// done adds the delay before a grant.
func (l *local) done(now, issue time.Duration) {
	l.delay += time.Duration(float64(issue-l.delay) * smoothing)
	switch {
	case l.delay <= issueTarget:
		l.depth = min(l.depth+1, mostDepth)
	case now-l.cut >= l.delay: // operations that have waited since before the last cut do not show its effect
		l.depth, l.cut = max(l.depth/2, 1), now
	}
}
