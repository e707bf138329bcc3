package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A Config holds the parameters of a [Conn]. All fields but the last two must be set.
type Config struct {
	LLP     transport.LLP
	Stream  *rdmap.Stream
	Owner   Owner
	Sweeper *Sweeper
	Tasks   *tasks.Group
	// ReceiveWait is how long a message waits for a receive to be posted.
	ReceiveWait time.Duration
	// StallWait is how long posted work must make no progress before NoticeNoProgress, at least
	// 8 ms; 0: there is no such notice.
	StallWait time.Duration
}

// New returns a Conn that does not receive before Start, unless it ends, and does not start sending
// by itself. A call of Post, or of a method that ends the connection, takes effect even before Start.
func New(c Config) *Conn {
	n := &Conn{llp: c.LLP, stream: c.Stream, owner: c.Owner, sweeper: c.Sweeper, tasks: c.Tasks, receiveWait: c.ReceiveWait, stallWait: c.StallWait}
	n.ending.drained = make(chan struct{})
	n.arbiter.rx = rxUnstarted
	n.ready = n.inputReady
	n.nudge = n.Nudge
	n.reader = n.tasks.Task(n.read)
	n.writer = n.tasks.Task(func() { n.send(true) })
	return n
}

// Start begins to receive, and sends what is queued. It must be called at most once.
func (c *Conn) Start() {
	c.mu.Lock()
	c.act(c.arbiter.start())
	c.watchProgress()
	c.Post()
}
