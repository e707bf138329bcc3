package target

import (
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
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

// aheadMost is how many octets of buffers a queue has at most when it fills one with what is in memory: while one is sent the next
// is filled. With more of them the memory of a buffer is not in a cache any more when its turn comes again.
const aheadMost = 2 << 20

// mostOf is how many octets the queue of a task may have with its buffer.
func (b *budget) mostOf(tk *task, size int64) int64 {
	if tk.do == model.DoExecute && backend.Describe(handleOf(tk.op.Namespace).medium()).Immediate { // it is a read
		return min(b.perQueue, max(aheadMost, size))
	}
	return b.perQueue
}

// take accounts for a buffer of a task. If it returns false, the task waits, and the budget goes on with it.
func (b *budget) take(tk *task, n int) bool {
	q, size := tk.q, int64(sizeOf(n))
	tk.most = b.mostOf(tk, size)
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.wants.empty() && q.held+size <= tk.most && b.used+size <= b.total && (len(b.waiting) == 0 || !b.starved()) {
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

// starved tells whether a queue waits because of the others: it would not get what another one took before. mu is held.
func (b *budget) starved() bool {
	return slices.ContainsFunc(b.waiting, func(q *queue) bool { return q.held+sizeOfNext(q) <= q.wants.first.most })
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
		case q.held+size > q.wants.first.most:
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
