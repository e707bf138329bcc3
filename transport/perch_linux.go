//go:build linux && !purego

package transport

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A perch is where a goroutine parks in the runtime's poller until a socket is ready that
// the poller does not know: an epoll set between the two. The set tells of the socket only
// while somebody cares. Each is a descriptor, so there are few.
type perch struct {
	epfd int
	file *os.File // of epfd
	raw  syscall.RawConn
}

// maxPerches is how many perches those who could do without one may have at a time.
const maxPerches = 64

// perches are the perches of the process.
var perches perchPool

// A perchPool lends perches. It keeps those that nobody is on only while a socket is open.
type perchPool struct {
	mu      sync.Mutex
	sockets int // that are open
	lent    int
	idle    []*perch
}

// opened and closed count the sockets.
func (l *perchPool) opened() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets++
}

func (l *perchPool) closed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets--
	if l.sockets == 0 {
		for i, p := range l.idle {
			p.close()
			l.idle[i] = nil
		}
		l.idle = l.idle[:0]
	}
}

// take returns a perch, new or used; nil: there is none, because the process has no
// descriptor left, or because there are enough of them for those who could do without.
func (l *perchPool) take(couldDoWithout bool) *perch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if couldDoWithout && l.lent >= maxPerches {
		return nil
	}
	if n := len(l.idle); n > 0 {
		p := l.idle[n-1]
		l.idle[n-1] = nil
		l.idle = l.idle[:n-1]
		l.lent++
		return p
	}
	p := new(perch)
	var err error
	if p.epfd, p.file, p.raw, err = newEpoll(); err != nil {
		return nil
	}
	l.lent++
	return p
}

// give takes a perch back.
func (l *perchPool) give(p *perch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent--
	if l.sockets == 0 || len(l.idle) >= maxPerches {
		p.close()
		return
	}
	l.idle = append(l.idle, p)
}

func (p *perch) close() { _ = p.file.Close() } // of an epoll set never fails

// tell has the set told of each change of s in direction dir, or of nothing. Who is to be
// told is told at once if s is ready. It reports false if that cannot be.
func (p *perch) tell(s *socket, op int, dir direction, all bool) bool {
	if !s.hold() {
		return false // a closed socket has left the set
	}
	defer s.drop()
	ev := unix.EpollEvent{Events: unix.EPOLLET}
	if all {
		ev.Events |= dir.epollEvents()
	}
	return unix.EpollCtl(p.epfd, op, s.fd, &ev) == nil
}
