// Package bottleneck emulates a slow link into one host, within the process: what many hosts send to it
// goes through a queue, one chunk after the other, at a rate.
//
// Each host has a socket buffer of its own. The link drops nothing, so it treats hosts that send more
// than it takes better than a switch would: octets that a switch would have dropped are delayed.
package bottleneck

import (
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// Options describe a link.
type Options struct {
	Rate       int64         // octets per second: see SetRate
	Latency    time.Duration // of each direction, without the queue
	SocketSize int           // octets that a host may have on the link: 64 KiB
	Buffer     int           // octets of the switch in front of the link, for Overflow; 0: no limit
	// Sleep waits for the time that a chunk takes; nil: time.Sleep, which may take a millisecond
	// more. The link makes up for time that Sleep takes too long, while there is something to carry.
	Sleep func(d time.Duration)
}

const (
	defaultSocketSize = 64 << 10
	// chunkSize is how many octets of one host go over the link before another host's turn.
	chunkSize = 16 << 10
	// received is how many octets of one host the receiver buffers without reading them.
	received = 1 << 20
	// worthSleeping is the shortest time for which the link sleeps: if it is early by less now, it
	// sleeps longer the next time.
	worthSleeping = 100 * time.Microsecond
)

// A Link carries what many hosts send to one.
type Link struct {
	opts Options
	done sync.WaitGroup

	mu      sync.Mutex
	filled  sync.Cond // of run: there is something to carry, the rate has changed, or the link has ended
	rate    int64     // octets per second; 0: nothing is carried
	queue   []chunk
	backlog int // octets of queue, and of the chunk that is being carried
	most    int
	over    int64 // octets that came when the buffer had no room for them
	closed  bool
}

// A chunk is octets on their way.
type chunk struct {
	from *host
	data []byte
}

// New returns a link, which must be closed.
func New(o Options) *Link {
	if o.SocketSize <= 0 {
		o.SocketSize = defaultSocketSize
	}
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
	l := &Link{opts: o, rate: o.Rate}
	l.filled.L = &l.mu
	l.done.Go(l.run)
	return l
}

// SetRate changes how many octets per second the link carries. With 0 it carries nothing: octets wait, as
// they do in a socket whose segments are lost, and go on with the next rate.
func (l *Link) SetRate(rate int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
	l.filled.Signal()
}

// Pair connects a host: near is the receiver's end. What it sends does not go over the link.
func (l *Link) Pair() (near, far net.Conn) {
	near, end := transport.Pipe(transport.PipeOptions{Latency: l.opts.Latency, Limit: received})
	h := &host{Conn: end, link: l}
	h.room.L = &l.mu
	return near, h
}

// Backlog returns how many octets are on the link now, and the most that there were since the previous
// call.
func (l *Link) Backlog() (now, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most, l.most = l.most, l.backlog
	return l.backlog, most
}

// Overflow returns how many octets came when Options.Buffer had no room for them. A switch would have
// dropped them.
func (l *Link) Overflow() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// Close ends the link. What is on it is lost.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	for _, c := range l.queue {
		c.from.room.Broadcast()
	}
	l.filled.Signal()
	l.mu.Unlock()
	l.done.Wait()
}

// run carries one chunk after the other.
func (l *Link) run() {
	free := time.Now() // when the link will have carried everything so far
	for {
		c, rate, idle, ok := l.next()
		if !ok {
			return
		}
		if now := time.Now(); idle && free.Before(now) {
			free = now // otherwise the link is late, and makes up for that
		}
		free = free.Add(time.Duration(len(c.data)) * time.Second / time.Duration(rate))
		if early := time.Until(free); early >= worthSleeping {
			l.opts.Sleep(early)
		}
		_, _ = c.from.Conn.Write(c.data) // it fails if the connection was reset
		l.carried(c)
	}
}

// next waits for a chunk, and returns the rate at which to carry it. idle reports whether it had to wait.
func (l *Link) next() (c chunk, rate int64, idle, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (len(l.queue) == 0 || l.rate == 0) && !l.closed {
		idle = true
		l.filled.Wait()
	}
	if l.closed {
		return chunk{}, 0, idle, false
	}
	c = l.queue[0]
	l.queue[0] = chunk{}
	l.queue = l.queue[1:]
	return c, l.rate, idle, true
}

func (l *Link) carried(c chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog -= len(c.data)
	c.from.held -= len(c.data)
	c.from.room.Broadcast()
}

// A host is the far end of a connection over the link.
type host struct {
	net.Conn // the end of a pipe

	link  *Link
	room  sync.Cond // octets of the host were carried, or the link is closed
	held  int       // octets of the host on the link
	ended bool      // its connection was reset
}

// Write waits until the octets are on the link. Deadlines do not bound it.
func (h *host) Write(p []byte) (n int, err error) {
	l := h.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(p) {
		for h.held >= l.opts.SocketSize && !l.closed && !h.ended {
			h.room.Wait()
		}
		if l.closed || h.ended {
			return n, net.ErrClosed
		}
		k := min(len(p)-n, l.opts.SocketSize-h.held, chunkSize)
		l.queue = append(l.queue, chunk{h, append([]byte(nil), p[n:n+k]...)})
		h.held += k
		l.backlog += k
		l.most = max(l.most, l.backlog)
		if l.opts.Buffer > 0 {
			l.over += int64(min(k, max(0, l.backlog-l.opts.Buffer)))
		}
		l.filled.Signal()
		n += k
	}
	return n, nil
}

// drained waits until nothing of the host is on the link.
func (h *host) drained() {
	h.link.mu.Lock()
	defer h.link.mu.Unlock()
	for h.held > 0 && !h.link.closed && !h.ended {
		h.room.Wait()
	}
}

// CloseWrite ends the stream to the receiver, behind what was written.
func (h *host) CloseWrite() error {
	h.drained()
	return h.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// Close closes the connection, behind what was written.
func (h *host) Close() error {
	h.drained()
	return h.Conn.Close()
}

// Abort resets the connection.
func (h *host) Abort() error {
	h.link.mu.Lock()
	h.ended = true
	h.room.Broadcast()
	h.link.mu.Unlock()
	return h.Conn.(interface{ Abort() error }).Abort()
}
