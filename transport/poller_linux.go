//go:build linux && !purego

package transport

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Poller reports which of many idle connections have become readable, so that an idle
// connection needs no goroutine. It consists of one epoll set and one watcher goroutine, which
// the first Arm starts. The watcher parks in the poller of the Go runtime, so that it occupies
// no thread of the operating system. All methods are safe for concurrent use.
type Poller struct {
	set  epollSet
	done chan struct{} // closed when the watcher has ended

	nests bool         // connections may have epoll sets of their own
	busy  atomic.Int32 // number of connections that have one: see waiting.takeSet

	mu      lockorder.Mutex[lockorder.Poller]
	closed  bool
	started bool
	slots   []slot
	free    []int32
	kicked  []func() // callbacks that the watcher is to call without an event

	alarm   alarm
	watches peerWatches

	// These are used by the watcher alone.
	events [128]unix.EpollEvent
	count  int        // how many events were fetched
	ready  []func()   // callbacks that are due
	told   []*waiting // waits that are to be ended
}

// A slot is the entry of one connection. Events carry the index and the seq of a slot, so
// that an event of an earlier Arm, or of an earlier connection with the same descriptor or
// slot, is recognized and dropped.
type slot struct {
	seq   int32
	watch *watch
	ready func()      // nil: not armed
	waits [2]*waiting // by direction; nil: no goroutine waits
}

// wants returns the events that epoll is to report for the connection, once.
func (sl *slot) wants() uint32 {
	events := uint32(unix.EPOLLONESHOT)
	if sl.ready != nil || sl.waits[inward] != nil {
		events |= inward.epollEvents()
	}
	if sl.waits[outward] != nil {
		events |= outward.epollEvents()
	}
	return events
}

// happened handles events of a connection: it moves the waits and the callback that they concern
// from the slot to p.told and p.ready.
func (p *Poller) happened(sl *slot, events uint32) {
	const end = unix.EPOLLHUP | unix.EPOLLERR
	for d := range sl.waits {
		if w := sl.waits[d]; w != nil && events&(direction(d).epollEvents()|end) != 0 {
			sl.waits[d] = nil
			p.told = append(p.told, w)
		}
	}
	if sl.ready != nil && events&(inward.epollEvents()|end) != 0 {
		p.ready = append(p.ready, sl.ready)
		sl.ready = nil
	}
	if sl.wants() != unix.EPOLLONESHOT {
		sl.watch.control() // other events are still wanted
	}
}

// NewPoller returns a Poller without connections.
func NewPoller() (*Poller, error) {
	p := &Poller{done: make(chan struct{}), nests: nests()}
	if err := p.set.open(); err != nil {
		return nil, Exhausted(err)
	}
	if err := p.alarm.open(p.set.fd); err != nil {
		_ = p.set.close()
		return nil, Exhausted(err)
	}
	return p, nil
}

// Close ends the watcher, and returns when the last callback has returned. It must not be
// called from a callback. From now on Arm reports false, and callbacks that are still armed
// are never called: close the connections first.
func (p *Poller) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.closed = true
	started := p.started
	p.mu.Unlock()
	err := p.set.close()
	if started {
		<-p.done
	}
	p.watches.looking.Wait()
	p.alarm.close()
	return err
}

// start starts the watcher, once. p.mu must be held.
func (p *Poller) start() {
	if !p.started {
		p.started = true
		go p.watch()
	}
}

// watch is the watcher goroutine.
func (p *Poller) watch() {
	defer close(p.done)
	wait := p.wait
	for {
		p.count = 0
		err := p.set.raw.Read(wait)
		p.collect()
		for i, w := range p.told {
			p.told[i] = nil
			w.tell()
		}
		for i, ready := range p.ready {
			p.ready[i] = nil
			ready()
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return // the Poller was closed; a kick causes ErrDeadlineExceeded
		}
	}
}

// wait fetches events. If there are none it returns false, and the runtime parks the
// goroutine until there are some. The runtime's poller is edge-triggered, so wait must not
// return false after a fetch that returned events. The scheduler is not told of the call, which
// does not wait: each time it is told after the process was idle, its monitor thread wakes, and
// then looks at all processors every 20 microseconds for a while.
func (p *Poller) wait(fd uintptr) bool {
	n, e := do(false, unix.SYS_EPOLL_PWAIT, fd, unsafe.Pointer(&p.events[0]), uintptr(len(p.events)), 0)
	p.count = n
	return n != 0 || e != 0
}

// collect moves the calls for the fetched events and the kicked callbacks to p.told and p.ready.
func (p *Poller) collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.told = p.ready[:0], p.told[:0]
	for _, ev := range p.events[:p.count] {
		if ev.Fd == alarmSlot {
			p.ring()
			continue
		}
		if sl := &p.slots[ev.Fd]; sl.seq == ev.Pad {
			p.happened(sl, ev.Events)
		}
	}
	if len(p.kicked) > 0 {
		p.ready = append(p.ready, p.kicked...)
		clear(p.kicked)
		p.kicked = p.kicked[:0]
		p.set.resume()
	}
}

// kick makes the watcher call ready without an event. p.mu must be held.
func (p *Poller) kick(ready func()) {
	p.kicked = append(p.kicked, ready)
	p.set.interrupt()
}

// add returns the index of a free slot. p.mu must be held.
func (p *Poller) add() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.slots = append(p.slots, slot{})
	return int32(len(p.slots) - 1)
}
