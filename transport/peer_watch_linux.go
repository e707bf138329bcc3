//go:build linux && !purego

package transport

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// TCP_USER_TIMEOUT does not bound how long a peer may be silent: Linux also counts the time
// during which the peer's window is closed, although the peer acknowledges each probe
// (tcp_probe_timer). So a Stream that has a Poller removes that bound from its socket, and the
// Poller checks the connection at intervals, from a write until all data is acknowledged. TCP
// keep-alive detects the loss of the peer at other times.

// A peerWatch enforces the bound of [SetPeerTimeout] on one TCP connection.
type peerWatch struct {
	poller  *Poller
	control func(f func(fd int)) // calls f with the descriptor, unless that is closed

	writing atomic.Int32 // number of calls that may be waiting to write
	listed  atomic.Bool  // it is on the list of the Poller
	over    atomic.Bool  // the peer has been silent for too long

	ackTimer // used by the Poller alone
}

// newPeerWatch removes TCP_USER_TIMEOUT from the socket of a connection. It returns nil, and does
// not change the socket, if the socket has no bound.
func newPeerWatch(p *Poller, control func(f func(fd int))) *peerWatch {
	s := &peerWatch{poller: p, control: control}
	control(func(fd int) {
		ms, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || ms <= 0 {
			return
		}
		limit := time.Duration(ms) * time.Millisecond
		s.ackTimer = newAckTimer(limit, boundProbes(fd, limit))
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0) // cannot fail: the option is supported
	})
	if s.limit == 0 {
		return nil
	}
	return s
}

// peerWatchOf returns newPeerWatch for a connection that is driven through its methods; nil if p
// is nil.
func peerWatchOf(c net.Conn, p *Poller) *peerWatch {
	if p == nil {
		return nil
	}
	for {
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = below.NetConn()
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	return newPeerWatch(p, func(f func(fd int)) {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // fails if it is closed
	})
}

// tcpRTOMax is TCP_RTO_MAX_MS, which Linux knows from 6.15 on.
const tcpRTOMax = 44

// boundProbes makes the kernel send four times within limit, but at most once a second, to a
// peer that acknowledges nothing or has closed its window. It returns the interval, or 0 if the
// kernel does not support this; the kernel then doubles the interval each time, up to two
// minutes.
func boundProbes(fd int, limit time.Duration) time.Duration {
	often := min(max(limit/4, time.Second), 2*time.Minute)
	if unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMax, int(often.Milliseconds())) != nil {
		return 0
	}
	return often
}

// wrote puts the connection on the list of the Poller, after a write.
func (s *peerWatch) wrote() {
	if s == nil || s.listed.Load() || s.listed.Swap(true) {
		return
	}
	s.poller.watchPeer(s)
}

// begin must be called before a write that may wait, and end after it.
func (s *peerWatch) begin() {
	if s != nil {
		s.writing.Add(1)
		s.wrote()
	}
}

func (s *peerWatch) end() {
	if s != nil {
		s.writing.Add(-1)
		s.wrote()
	}
}

// timedOut returns ETIMEDOUT instead of err if the connection was ended because its peer was
// silent, and err otherwise.
func (s *peerWatch) timedOut(op string, err error) error {
	if err == nil || s == nil || !s.over.Load() {
		return err
	}
	return os.NewSyscallError(op, syscall.ETIMEDOUT)
}

// look checks the connection. It reports false if it need not be checked again until
// something is written.
func (s *peerWatch) look(now time.Time) (again bool) {
	s.listed.Store(false) // before the check, so that a write after it lists the connection again
	s.control(func(fd int) {
		i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		var dead bool
		if again, dead = s.judge(now, i); dead {
			s.giveUp(fd)
			again = false
			return
		}
		again = again || s.writing.Load() > 0
	})
	return again && !s.listed.Swap(true)
}

// giveUp ends the connection. Calls that wait for the socket return.
func (s *peerWatch) giveUp(fd int) {
	s.over.Store(true)
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // fails if it has ended
}

// An ackTimer decides whether a peer has been silent for too long.
type ackTimer struct {
	limit    time.Duration // how long the peer may be silent
	patience time.Duration // how long data or a probe must have been unacknowledged as well
	since    time.Time     // since when data or a probe is unacknowledged; zero: none is
	judged   time.Time     // the time of the last judgement
}

// newAckTimer returns an ackTimer for a kernel that probes a closed window at intervals of
// often, 0 if that is unknown. A single probe may stay unanswered, because a peer does not
// answer two probes within half a second.
func newAckTimer(limit, often time.Duration) ackTimer {
	if often == 0 {
		return ackTimer{limit: limit, patience: limit}
	}
	return ackTimer{limit: limit, patience: max(limit/2, often*3/2)}
}

// every returns the interval of the checks.
func (v *ackTimer) every() time.Duration { return max(v.limit/8, 10*time.Millisecond) }

// judge reports whether data or a probe is unacknowledged, and whether the peer is lost. Data
// that waits for the peer's window to open was not sent, so the peer does not have to
// acknowledge it. A long time without a judgement means that this process was stopped; what
// is unacknowledged may then have been sent a moment ago.
func (v *ackTimer) judge(now time.Time, i *unix.TCPInfo) (outstanding, dead bool) {
	stopped := now.Sub(v.judged) > max(v.limit-v.every(), 2*v.every())
	v.judged = now
	unanswered := i.Unacked > 0 || i.Probes > 0
	silent := time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	switch {
	case !unanswered:
		v.since = time.Time{}
		return i.Notsent_bytes > 0, false
	case v.since.IsZero(), stopped:
		v.since = now
	case now.Sub(v.since) > silent: // the peer has acknowledged something since then
		v.since = now.Add(-silent)
	}
	return true, silent >= v.limit-v.every() && now.Sub(v.since) >= v.patience
}

// peerWatches holds the connections that a Poller checks.
type peerWatches struct {
	turn    lockorder.Mutex[lockorder.Turn] // held during a check of the list
	mu      lockorder.Mutex[lockorder.Leaf]
	list    []*peerWatch
	every   time.Duration // the duration for which the alarm was set; 0: it is not set
	looking sync.WaitGroup
}

// watchPeer puts s on the list.
func (p *Poller) watchPeer(s *peerWatch) {
	l := &p.watches
	l.mu.Lock()
	l.list = append(l.list, s)
	every := s.every()
	sooner := l.every == 0 || every < l.every
	if sooner {
		l.every = every
	}
	l.mu.Unlock()
	if sooner {
		p.setLook(every)
	}
}

// look checks all connections on the list.
func (p *Poller) look() {
	l := &p.watches
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	list := l.list
	l.list, l.every = nil, 0
	l.mu.Unlock()
	now := time.Now()
	for _, s := range list {
		if s.look(now) {
			p.watchPeer(s)
		}
	}
}
