//go:build linux && !purego

package transport

import "golang.org/x/sys/unix"

// watch is the registration of one connection with a Poller. The mutex of the Poller guards
// its fields.
type watch struct {
	poller   *Poller
	sock     *socket
	slot     int32
	added    bool // the descriptor is in the epoll set, and slot is valid
	released bool // the connection is closed
}

func (w *watch) init(p *Poller, s *socket) { w.poller, w.sock = p, s }

// arm requests one call of ready. A second call replaces the callback.
func (w *watch) arm(ready func()) bool {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.ask(func(sl *slot) { sl.ready = ready })
}

// await requests one call of x.tell, when the direction of x is ready. It reports false if that
// is not possible.
func (w *watch) await(x *waiting) bool {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.ask(func(sl *slot) { sl.waits[x.dir] = x })
}

// forget withdraws the request of await. The kernel may still report the event once: to prevent
// that would cost another system call.
func (w *watch) forget(x *waiting) {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.added && p.slots[w.slot].waits[x.dir] == x {
		p.slots[w.slot].waits[x.dir] = nil
	}
}

// ask calls enter, which changes the slot, and registers the events that the slot wants with the
// kernel. The mutex of the Poller must be held.
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

// disarm removes the callback, and its event from the epoll set: otherwise the kernel would wake
// the watcher, too, when it wakes the goroutine that now waits for the same input.
func (w *watch) disarm() {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.added || p.slots[w.slot].ready == nil {
		return
	}
	p.slots[w.slot].ready = nil
	w.control() // fails for a closed connection, which is not in the set any more
}

// release frees the slot after the connection was closed, which has removed the descriptor
// from the set. A callback that is armed is called, so that the end is noticed.
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

// control registers the events that the slot wants with the kernel, under a new seq. The mutex of
// the Poller must be held.
func (w *watch) control() bool {
	if w.poller.closed || !w.sock.hold() {
		return false // the descriptor number may belong to another file by now
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
