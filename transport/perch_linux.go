//go:build linux && !purego

package transport

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/freelist"
)

// A perch is where a goroutine parks in the runtime's poller until a socket is ready that
// the poller does not know: an epoll set between the two. The set tells of the socket only
// while somebody cares.
type perch struct {
	epfd int
	file *os.File // of epfd
	raw  syscall.RawConn
}

// perches are those that nobody is on. One that is forgotten is closed.
var perches = freelist.List[perch]{Keep: 8}

// newPerch returns a perch, new or used.
func newPerch() (*perch, error) {
	if p := perches.Get(); p != nil {
		return p, nil
	}
	p := new(perch)
	var err error
	if p.epfd, p.file, p.raw, err = newEpoll(); err != nil {
		return nil, err
	}
	return p, nil
}

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
