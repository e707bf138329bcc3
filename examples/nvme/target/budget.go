package target

import (
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A budget bounds the octets of the buffers in use, on each queue and on all queues. Tasks for which none are left wait: in
// order on each queue, and the queues in turn.
type budget struct {
	t               *Target
	total, perQueue int64

	mu      sync.Mutex
	used    int64
	most    int64    // the maximum that was ever used
	waiting []*queue // queues with waiting tasks; the first one is next
	timer   *time.Timer
	armed   bool
}

func (b *budget) init(t *Target) {
	b.t, b.total, b.perQueue = t, int64(t.cfg.Limits.Memory), int64(t.cfg.Limits.QueueMemory)
	b.timer = time.AfterFunc(time.Hour, b.expire)
	b.timer.Stop()
}

// aheadMost is the maximum number of octets of buffers of a queue that fills buffers from memory: while one is sent, the next one
// is filled. With more, the memory of a buffer is no longer in a cache when its turn comes again.
const aheadMost = 2 << 20

// mostOf returns how many octets the queue of a task may have, including the task's buffer.
func (b *budget) mostOf(tk *task, size int64) int64 {
	if tk.do == model.DoExecute && backend.Describe(handleOf(tk.op.Namespace).medium()).Immediate { // it is a read
		return min(b.perQueue, max(aheadMost, size))
	}
	return b.perQueue
}

// take accounts for a buffer of a task. If it returns false, the task waits, and the budget continues it later.
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

// starved reports whether a queue waits because of the others, and so must not be overtaken. mu must be held.
func (b *budget) starved() bool {
	return slices.ContainsFunc(b.waiting, func(q *queue) bool { return q.held+sizeOfNext(q) <= q.wants.first.most })
}

func sizeOfNext(q *queue) int64 { return int64(sizeOf(q.wants.first.needs())) }

func (b *budget) grant(q *queue, size int64) {
	q.held += size
	b.used += size
	b.most = max(b.most, b.used)
}

// release frees octets, and continues tasks that were waiting for them. No lock may be held.
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

// next grants what fits. It skips a queue that has reached its own limit, but not a queue that waits for the others, so
// that this queue gets what they free. mu must be held.
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

// arm makes expire be called after d, unless it is due earlier. mu must be held.
func (b *budget) arm(d time.Duration) {
	if !b.armed {
		b.armed = true
		b.timer.Reset(d)
	}
}

// expire answers the commands that have waited too long.
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
	granted := b.next() // an expired task may have blocked a smaller one
	b.mu.Unlock()
	for tk := over.pop(); tk != nil; tk = over.pop() {
		tk.finish(capsule.StatusBusy)
	}
	for tk := granted.pop(); tk != nil; tk = granted.pop() {
		tk.proceed(false)
	}
}

// leave removes the waiting tasks of a queue that has ended.
func (b *budget) leave(q *queue) (waited taskList) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited, q.wants = q.wants, taskList{}
	b.waiting = slices.DeleteFunc(b.waiting, func(o *queue) bool { return o == q })
	return waited
}

// settle frees all octets of a queue whose buffers are free.
func (b *budget) settle(q *queue) {
	b.mu.Lock()
	n := q.held
	b.mu.Unlock()
	b.release(q, int(n))
}
