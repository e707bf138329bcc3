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

// TCP_USER_TIMEOUT cannot say how long a peer may be silent: Linux counts the time for
// which a window is closed too, although the peer acknowledges every probe of it
// (tcp_probe_timer). So a Stream that has a Poller takes that bound off its socket, and the
// Poller looks itself, now and then, at those to which something was written until all of
// it has been acknowledged. Keep-alive watches over the others.

// A silence is one TCP connection under the bound of [SetPeerTimeout].
type silence struct {
	poller  *Poller
	control func(f func(fd int)) // runs f with the descriptor, unless that is closed

	writing atomic.Int32 // calls that may be waiting to write
	listed  atomic.Bool  // the Poller looks after it
	over    atomic.Bool  // the peer has been silent for too long

	vigil // the Poller's
}

// newSilence takes the bound off the socket of a connection. It returns nil if there is none,
// or nobody to look after it.
func newSilence(p *Poller, control func(f func(fd int))) *silence {
	if p == nil {
		return nil
	}
	s := &silence{poller: p, control: control}
	control(func(fd int) {
		ms, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || ms <= 0 {
			return
		}
		limit := time.Duration(ms) * time.Millisecond
		s.vigil = newVigil(limit, boundProbes(fd, limit))
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0) // it could be set, so it can be
	})
	if s.limit == 0 {
		return nil
	}
	return s
}

// silenceOf is newSilence for a connection that is driven through its methods.
func silenceOf(c net.Conn, p *Poller) *silence {
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
	return newSilence(p, func(f func(fd int)) {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // fails if it is closed
	})
}

// tcpRTOMax is TCP_RTO_MAX_MS, which Linux knows from 6.15 on.
const tcpRTOMax = 44

// boundProbes has the kernel send, to a peer that acknowledges nothing or has closed its
// window, four times in limit, and returns how often it does. The kernel does not do so
// more than once a second. Zero: it cannot, and waits twice as long each time, up to two
// minutes.
func boundProbes(fd int, limit time.Duration) time.Duration {
	often := min(max(limit/4, time.Second), 2*time.Minute)
	if unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMax, int(often.Milliseconds())) != nil {
		return 0
	}
	return often
}

// wrote has the Poller look after the connection, to which something was written.
func (s *silence) wrote() {
	if s == nil || s.listed.Load() || s.listed.Swap(true) {
		return
	}
	s.poller.lookAfter(s)
}

// begin is called before a call that writes and may wait, and end after it.
func (s *silence) begin() {
	if s != nil {
		s.writing.Add(1)
		s.wrote()
	}
}

func (s *silence) end() {
	if s != nil {
		s.writing.Add(-1)
		s.wrote()
	}
}

// mend returns what err, met on the connection, is because the peer has been silent.
func (s *silence) mend(op string, err error) error {
	if err == nil || s == nil || !s.over.Load() {
		return err
	}
	return os.NewSyscallError(op, syscall.ETIMEDOUT)
}

// look looks at the connection. It reports false if there is no need to do so again until
// something is written.
func (s *silence) look(now time.Time) (again bool) {
	s.listed.Store(false) // before looking: who writes after that lists it anew
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

// giveUp ends the connection. Who waits is told.
func (s *silence) giveUp(fd int) {
	s.over.Store(true)
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // fails if it has ended
}

// A vigil judges whether a peer is silent for too long.
type vigil struct {
	limit    time.Duration // how long the peer may be silent
	patience time.Duration // how long something must have been unanswered before it is given up
	since    time.Time     // since when something is unanswered; zero: nothing is
}

// newVigil makes one for a kernel that probes a closed window so often, 0 if that is not
// known. One probe need not be answered: a peer does not answer two within half a second.
func newVigil(limit, often time.Duration) vigil {
	if often == 0 {
		return vigil{limit: limit, patience: limit}
	}
	return vigil{limit: limit, patience: max(limit/2, often*3/2)}
}

// every is how often to look.
func (v *vigil) every() time.Duration { return max(v.limit/8, 10*time.Millisecond) }

// judge reports whether something is not acknowledged yet, and whether the peer is to be
// given up. A probe of a closed window that was answered is acknowledged: the octets that
// wait for the window are what we owe, not the peer.
func (v *vigil) judge(now time.Time, i *unix.TCPInfo) (outstanding, dead bool) {
	unanswered := i.Unacked > 0 || i.Probes > 0
	silent := time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	switch {
	case !unanswered:
		v.since = time.Time{}
		return i.Notsent_bytes > 0, false
	case v.since.IsZero():
		v.since = now
	case now.Sub(v.since) > silent: // what is unanswered now is younger than the last sign
		v.since = now.Add(-silent)
	}
	return true, silent >= v.limit-v.every() && now.Sub(v.since) >= v.patience
}

// silences are the connections that a Poller looks after.
type silences struct {
	turn    lockorder.Mutex[lockorder.Turn] // of who looks
	mu      lockorder.Mutex[lockorder.Leaf]
	list    []*silence
	every   time.Duration // after which the alarm was set; 0: it is not set
	looking sync.WaitGroup
}

// lookAfter puts s on the list.
func (p *Poller) lookAfter(s *silence) {
	l := &p.silences
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

// look looks at the whole list.
func (p *Poller) look() {
	l := &p.silences
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	list := l.list
	l.list, l.every = nil, 0
	l.mu.Unlock()
	now := time.Now()
	for _, s := range list {
		if s.look(now) {
			p.lookAfter(s)
		}
	}
}
