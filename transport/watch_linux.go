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
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.ask(func(sl *slot) { sl.ready = ready })
}

// await asks for one call of x.tell when x's direction is ready. It reports false if that
// cannot be.
func (w *watch) await(x *waiting) bool {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.ask(func(sl *slot) { sl.waits[x.dir] = x })
}

// forget takes back what await has asked for. The kernel goes on to tell of it, once: to
// take that back too would cost another system call.
func (w *watch) forget(x *waiting) {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.added && p.slots[w.slot].waits[x.dir] == x {
		p.slots[w.slot].waits[x.dir] = nil
	}
}

// ask registers with the kernel the events that enter puts into the slot, and those that the
// slot wants already. The caller holds the Poller's mutex.
func (w *watch) ask(enter func(*slot)) bool {
	p := w.poller
	if w.released {
		return false
	}
	if !w.added {
		w.slot = p.add()
		p.slots[w.slot].watch = w
	}
	sl := &p.slots[w.slot]
	before := *sl
	enter(sl)
	if !w.control() {
		sl.ready, sl.waits = before.ready, before.waits
		if !w.added {
			p.free = append(p.free, w.slot)
		}
		return false
	}
	w.added = true
	p.start()
	return true
}

// disarm takes the callback back, and its event out of the epoll set: else the kernel would
// wake the watcher too when it wakes the goroutine that now waits for the same octets.
func (w *watch) disarm() {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.added || p.slots[w.slot].ready == nil {
		return
	}
	p.slots[w.slot].ready = nil
	w.control() // fails on a closed connection, which has left the set
}

// release gives the slot back after the connection was closed, which took the
// descriptor out of the set. A callback that is armed is called: there is
// something to learn.
func (w *watch) release() {
	p := w.poller
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
	sl.ready, sl.watch, sl.waits = nil, nil, [2]*waiting{} // waiting.close ends the waits
	p.free = append(p.free, w.slot)
}

// control registers the events that the slot wants with the kernel, under a new number. The
// caller holds the Poller's mutex.
func (w *watch) control() bool {
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
	ev := unix.EpollEvent{Events: sl.wants(), Fd: w.slot, Pad: sl.seq}
	return unix.EpollCtl(w.poller.set.fd, op, w.sock.fd, &ev) == nil
}
