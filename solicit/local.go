package solicit

import "time"

const (
	startDepth = 16
	mostDepth  = 1024
	// issueTarget is how long operations ought to wait for their grant: the queue is never empty, and
	// never long.
	issueTarget = 5 * time.Millisecond
)

// A local controls the queue in front of the window by the delay there, which tells nothing about the
// path.
type local struct {
	depth int           // operations
	delay time.Duration // smoothed
	cut   time.Duration
}

func newLocal() local { return local{depth: startDepth} }

// done takes the delay before a grant.
func (l *local) done(now, issue time.Duration) {
	l.delay += time.Duration(float64(issue-l.delay) * smoothing)
	switch {
	case l.delay <= issueTarget:
		l.depth = min(l.depth+1, mostDepth)
	case now-l.cut >= l.delay: // what waits since before the last cut tells nothing of it
		l.depth, l.cut = max(l.depth/2, 1), now
	}
}
