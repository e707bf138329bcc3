package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/rdmap"
)

// A progress watches whether posted work makes progress. The mutex of the Conn guards it.
type progress struct {
	timer *time.Timer // nil: it is not watched
	last  rdmap.Progress
	still int // how many looks in a row have seen nothing change
}

// progressLooks is how many looks there are in Config.StallWait, a millisecond apart at least: each of
// them costs processor time, also where nothing is under way.
const progressLooks = 8

// watchProgress causes a notice if work makes no progress for Config.StallWait, and up to one look
// longer. A clock that ticks beside the data path costs that path nothing.
func (c *Conn) watchProgress() {
	if c.stallWait <= 0 {
		return
	}
	every := max(c.stallWait/progressLooks, time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.stage < Ended {
		c.progress.timer = time.AfterFunc(every, func() { c.lookAtProgress(every) })
	}
}

// lookAtProgress is called by the timer. There is one notice for each time that work stands still.
func (c *Conn) lookAtProgress(every time.Duration) {
	now, busy := c.stream.Progress()
	c.mu.Lock()
	p := &c.progress
	if busy && now == p.last {
		p.still++
	} else {
		p.last, p.still = now, 0
	}
	tell := p.still == progressLooks && c.ending.stage < Terminating
	if c.ending.stage < Ended {
		p.timer.Reset(every)
	}
	c.mu.Unlock()
	if tell {
		c.owner.Notice(NoticeNoProgress)
	}
}

func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
