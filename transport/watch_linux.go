//go:build linux && !purego

package transport

import "golang.org/x/sys/unix"

// watch is one connection's part in a Poller. Its fields are guarded by the
// Poller's mutex.
type watch struct {
	poller   *Poller
	sock     *socket
	slot     int32
	added    bool // the descriptor is in the epoll set, and slot is ours
	released bool // the connection is closed
}

func (w *watch) init(p *Poller, s *socket) { w.poller, w.sock = p, s }

// arm asks for one call of ready. Arming twice replaces the first callback.
func (w *watch) arm(ready func()) bool {
	p := w.poller
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.released {
		return false
	}
	if !w.added {
		w.slot = p.add()
	}
	if !w.control(unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT) {
		if !w.added {
			p.free = append(p.free, w.slot)
		}
		return false
	}
	w.added = true
	p.slots[w.slot].ready = ready
	p.start()
	return true
}

// disarm takes the callback back, and the kernel's interest with it: else the
// watcher would be woken beside whoever now waits for the same octets.
func (w *watch) disarm() {
	p := w.poller
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.added || p.slots[w.slot].ready == nil {
		return
	}
	p.slots[w.slot].ready = nil
	w.control(unix.EPOLLONESHOT) // fails on a closed connection, which has left the set
}

// release gives the slot back after the connection was closed, which took the
// descriptor out of the set. A callback that is armed is called: there is
// something to learn.
func (w *watch) release() {
	p := w.poller
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.released = true
	if !w.added {
		return
	}
	w.added = false
	sl := &p.slots[w.slot]
	sl.seq++
	if sl.ready != nil && !p.closed {
		p.kick(sl.ready)
	}
	sl.ready = nil
	p.free = append(p.free, w.slot)
}

// control sets what the kernel shall tell of the connection, and numbers it. The
// caller holds the Poller's mutex.
func (w *watch) control(events uint32) bool {
	if w.poller.closed || !w.sock.hold() {
		return false // epfd may be another file's by now
	}
	defer w.sock.drop()
	sl := &w.poller.slots[w.slot]
	sl.seq++
	op := unix.EPOLL_CTL_MOD
	if !w.added {
		op = unix.EPOLL_CTL_ADD
	}
	ev := unix.EpollEvent{Events: events, Fd: w.slot, Pad: sl.seq}
	return unix.EpollCtl(w.poller.epfd, op, w.sock.fd, &ev) == nil
}
