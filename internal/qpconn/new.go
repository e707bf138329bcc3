package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// Config is what a [Conn] stands on. All fields must be set, but for ReceiveWait.
type Config struct {
	LLP     transport.LLP
	Stream  *rdmap.Stream
	Owner   Owner
	Sweeper *Sweeper
	Tasks   *tasks.Group
	// ReceiveWait is how long a message waits for a receive.
	ReceiveWait time.Duration
}

// New returns a Conn on which nothing happens of itself until Start. A post, a receive or an end
// that comes before begins to send or to receive at once.
func New(c Config) *Conn {
	n := &Conn{llp: c.LLP, stream: c.Stream, owner: c.Owner, sweeper: c.Sweeper, tasks: c.Tasks, receiveWait: c.ReceiveWait}
	n.ending.drained = make(chan struct{})
	n.arbiter.rx = rxStalled // until Start
	n.ready = n.inputReady
	n.nudge = n.Nudge
	n.reader = n.tasks.Task(n.read)
	n.writer = n.tasks.Task(func() { n.send(true) })
	return n
}

// Start begins to receive, and sends what is queued. It is called once.
func (c *Conn) Start() {
	c.mu.Lock()
	c.act(c.arbiter.start())
	c.Post()
}
