// Package tasks counts goroutines, so that the code that starts them can wait for their end.
package tasks

import "github.com/goiwarp/iwarp/internal/lockorder"

// A Group counts goroutines, and tasks that other goroutines perform instead. Unlike a
// sync.WaitGroup it may grow while a goroutine waits: a reader that ends may have to start a writer.
type Group struct {
	mu   lockorder.Mutex[lockorder.Leaf]
	n    int
	idle chan struct{} // closed when n falls to 0; nil while no goroutine waits
}

// Start runs f in a new goroutine.
func (t *Group) Start(f func()) { t.Launch(t.Task(f)) }

// Task prepares f for Launch, for callers that start f repeatedly and must not allocate.
func (t *Group) Task(f func()) func() {
	return func() {
		defer t.Add(-1)
		f()
	}
}

// Starter prepares f: each call of the function that it returns runs f in a new goroutine, and
// does not allocate.
func (t *Group) Starter(f func()) (start func()) {
	task := t.Task(f)
	return func() { t.Launch(task) }
}

// Launch runs a function that Task has prepared in a new goroutine.
func (t *Group) Launch(task func()) {
	t.Add(1)
	go task()
}

// Add adds change to the number of tasks.
func (t *Group) Add(change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += change
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Count returns the number of tasks.
func (t *Group) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Wait returns when no task is left.
func (t *Group) Wait() {
	for {
		t.mu.Lock()
		if t.n == 0 {
			t.mu.Unlock()
			return
		}
		if t.idle == nil {
			t.idle = make(chan struct{})
		}
		idle := t.idle
		t.mu.Unlock()
		<-idle
	}
}
