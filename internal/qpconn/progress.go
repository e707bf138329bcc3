package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/rdmap"
)

// A progress watches whether posted work makes progress. The mutex of the Conn guards it.
type progress struct {
	timer *time.Timer // nil: it is not watched
	last  rdmap.Progress
	still int // how many consecutive looks have seen no change
}

// progressLooks is the number of looks within Config.StallWait. They are at least a millisecond apart,
// because each costs processor time even when no work is outstanding.
const progressLooks = 8

// watchProgress causes a notice if work makes no progress for Config.StallWait, or up to one look
// longer. The timer runs beside the data path, and so costs that path nothing.
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

// lookAtProgress is called by the timer. It causes one notice each time that work stops making progress.
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
