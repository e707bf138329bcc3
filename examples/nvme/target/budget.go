package target

import (
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A budget bounds the octets of the buffers that are in use, on one queue and on all. Tasks for which there are none wait:
// in order on each queue, and the queues in turn.
type budget struct {
	t               *Target
	total, perQueue int64

	mu      sync.Mutex
	used    int64
	most    int64    // that ever was used
	waiting []*queue // that have tasks waiting; whose turn is next is first
	timer   *time.Timer
	armed   bool
}

func (b *budget) init(t *Target) {
	b.t, b.total, b.perQueue = t, int64(t.cfg.Limits.Memory), int64(t.cfg.Limits.QueueMemory)
	b.timer = time.AfterFunc(time.Hour, b.expire)
	b.timer.Stop()
}

// take accounts for a buffer of a task. If it returns false, the task waits, and the budget goes on with it.
func (b *budget) take(tk *task, n int) bool {
	q, size := tk.q, int64(sizeOf(n))
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.wants.empty() && b.fits(q, size) && (len(b.waiting) == 0 || !b.starved()) {
		b.grant(q, size)
		return true
	}
	b.t.stats.waits.Add(1)
	tk.deadline = b.t.now() + memoryWait
	if q.wants.empty() {
		b.waiting = append(b.waiting, q)
	}
	q.wants.push(tk)
	b.arm(memoryWait)
	return false
}

// fits tells whether there is room for so many octets more. mu is held.
func (b *budget) fits(q *queue, size int64) bool {
	return q.held+size <= b.perQueue && b.used+size <= b.total
}

// starved tells whether a queue waits because of the others: it would not get what another one took before. mu is held.
func (b *budget) starved() bool {
	return slices.ContainsFunc(b.waiting, func(q *queue) bool { return q.held+sizeOfNext(q) <= b.perQueue })
}

func sizeOfNext(q *queue) int64 { return int64(sizeOf(q.wants.first.needs())) }

func (b *budget) grant(q *queue, size int64) {
	q.held += size
	b.used += size
	b.most = max(b.most, b.used)
}

// release gives octets back, and goes on with tasks that were waiting for them. No lock is held.
func (b *budget) release(q *queue, n int) {
	b.mu.Lock()
	q.held -= int64(n)
	b.used -= int64(n)
	granted := b.next()
	b.mu.Unlock()
	for tk := granted.pop(); tk != nil; tk = granted.pop() {
		tk.proceed(false)
	}
}

// next grants what fits. A queue that has what it may have is passed over; one that waits for the others is not, so that
// it gets what they give back. mu is held.
func (b *budget) next() (granted taskList) {
	for i := 0; i < len(b.waiting); {
		q := b.waiting[i]
		size := sizeOfNext(q)
		switch {
		case q.held+size > b.perQueue:
			i++
			continue
		case b.used+size > b.total:
			return granted
		}
		b.grant(q, size)
		granted.push(q.wants.pop())
		b.waiting = slices.Delete(b.waiting, i, i+1)
		if !q.wants.empty() {
			b.waiting = append(b.waiting, q)
		}
	}
	return granted
}

// arm has expire called after d, if it is not called earlier. mu is held.
func (b *budget) arm(d time.Duration) {
	if !b.armed {
		b.armed = true
		b.timer.Reset(d)
	}
}

// expire answers the commands that have waited for too long.
func (b *budget) expire() {
	var over taskList
	b.mu.Lock()
	b.armed = false
	now, next := b.t.now(), time.Duration(-1)
	b.waiting = slices.DeleteFunc(b.waiting, func(q *queue) bool {
		for !q.wants.empty() && q.wants.first.deadline <= now {
			over.push(q.wants.pop())
		}
		if q.wants.empty() {
			return true
		}
		if left := q.wants.first.deadline - now; next < 0 || left < next {
			next = left
		}
		return false
	})
	if next >= 0 {
		b.arm(next)
	}
	granted := b.next() // what has expired may have been in front of something smaller
	b.mu.Unlock()
	for tk := over.pop(); tk != nil; tk = over.pop() {
		tk.finish(capsule.StatusBusy)
	}
	for tk := granted.pop(); tk != nil; tk = granted.pop() {
		tk.proceed(false)
	}
}

// leave takes the tasks of a queue that has ended out of the wait.
func (b *budget) leave(q *queue) (waited taskList) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited, q.wants = q.wants, taskList{}
	b.waiting = slices.DeleteFunc(b.waiting, func(o *queue) bool { return o == q })
	return waited
}

// settle gives back all that a queue has, whose buffers are free.
func (b *budget) settle(q *queue) {
	b.mu.Lock()
	n := q.held
	b.mu.Unlock()
	b.release(q, int(n))
}
