//go:build linux && !purego

package transport

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Poller tells which of many idle connections became readable, so that none of
// them needs a goroutine for it. It is one epoll set; its one watcher goroutine
// starts with the first Arm and itself parks in the runtime's poller, so that no
// thread of the operating system is kept. All methods are safe for concurrent use.
type Poller struct {
	set  epollSet
	done chan struct{} // closed when the watcher has ended

	busy atomic.Int32 // goroutines that have an epoll set of their own: see waiting.isBusy

	mu      lockorder.Mutex[lockorder.Poller]
	closed  bool
	started bool
	slots   []slot
	free    []int32
	kicked  []func() // to be called by the watcher without an event

	alarm   alarm
	watches peerWatches

	events [128]unix.EpollEvent // the watcher's
	count  int                  // how many of events are filled
	ready  []func()             // the watcher's: calls due
	told   []*waiting           // the watcher's: those to be woken
}

// A slot is one connection's place in the epoll set. Events carry its index and
// seq, so that an event of an earlier Arm, or of an earlier connection with the
// same descriptor or slot, is known and dropped.
type slot struct {
	seq   int32
	watch *watch      // of the connection
	ready func()      // nil: not armed
	waits [2]*waiting // by direction; nil: no goroutine waits
}

// wants returns the events that the connection is to be told of, once.
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

// happened moves the waits and the callback that the events concern from the slot to the calls
// that are due.
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
		sl.watch.control() // what did not happen is still waited for
	}
}

// NewPoller makes an empty epoll set.
func NewPoller() (*Poller, error) {
	p := &Poller{done: make(chan struct{})}
	if err := p.set.open(); err != nil {
		return nil, Exhausted(err)
	}
	if err := p.alarm.open(p.set.fd); err != nil {
		_ = p.set.close()
		return nil, Exhausted(err)
	}
	return p, nil
}

// Close ends the watcher and returns when its last callback has returned; it must
// not be called from a callback. Arm reports false from now on, and what is still
// armed is forgotten: close the connections first.
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

// start starts the watcher, once. The caller holds p.mu.
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
			return // closed; a kick is a deadline
		}
	}
}

// wait fetches events; false parks until there are some. The runtime's poller
// tells of edges, so it parks only after a fetch that brought nothing.
func (p *Poller) wait(fd uintptr) bool {
	for {
		n, err := unix.EpollWait(int(fd), p.events[:], 0)
		if err == unix.EINTR {
			continue
		}
		p.count = max(n, 0)
		return n != 0
	}
}

// collect turns the fetched events and the kicks into p.ready.
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

// kick makes the watcher call ready without an event. The caller holds p.mu.
func (p *Poller) kick(ready func()) {
	p.kicked = append(p.kicked, ready)
	p.set.interrupt()
}

// add gives a connection a slot. The caller holds p.mu.
func (p *Poller) add() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.slots = append(p.slots, slot{})
	return int32(len(p.slots) - 1)
}
