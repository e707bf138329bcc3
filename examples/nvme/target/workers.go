package target

import "sync"

// workers are goroutines that call back ends. They are started on demand, and wait for more work until finish.
type workers struct {
	most int

	mu       sync.Mutex
	changed  sync.Cond
	waiting  taskList
	idle     int // workers that wait and were not woken by a task
	running  int // all workers
	finished bool
}

func newWorkers(most int) *workers {
	w := &workers{most: most}
	w.changed.L = &w.mu
	return w
}

// submit queues a task, after those that were submitted before. It does not wait.
func (w *workers) submit(tk *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.push(tk)
	switch {
	case w.idle > 0:
		w.idle--
		w.changed.Signal()
	case w.running < w.most:
		w.running++
		go w.work()
	}
}

// finish makes the workers end when nothing is left to do.
func (w *workers) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished, w.idle = true, 0
	w.changed.Broadcast()
}

// ended reports whether finish was called and no worker is left.
func (w *workers) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finished && w.running == 0
}

// wait calls finish, and returns when all workers have ended.
func (w *workers) wait() {
	w.finish()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.running > 0 {
		w.changed.Wait()
	}
}

func (w *workers) work() {
	var scratch scratch
	for tk := w.next(); tk != nil; tk = w.next() {
		tk.execute(&scratch)
	}
}

// next waits for a task. If it returns nil, the worker ends.
func (w *workers) next() *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.waiting.empty() {
		if w.finished {
			w.running--
			w.changed.Broadcast()
			return nil
		}
		w.idle++
		w.changed.Wait()
	}
	return w.waiting.pop()
}
