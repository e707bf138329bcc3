package iwarp

import "sync"

// tasks counts the goroutines of an RNIC, and what others do for it. Unlike a sync.WaitGroup it may grow
// while somebody waits: a reader that ends may have to start a sender.
type tasks struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0; nil while nobody waits
}

// start runs f in a goroutine of its own.
func (t *tasks) start(f func()) { t.launch(t.task(f)) }

// task prepares f for launch, for those who start it over and over and must not
// allocate.
func (t *tasks) task(f func()) func() {
	return func() {
		defer t.end()
		f()
	}
}

// starter prepares f: each call of the function that it returns runs f in a goroutine of its
// own, and does not allocate.
func (t *tasks) starter(f func()) (start func()) {
	task := t.task(f)
	return func() { t.launch(task) }
}

// launch runs what task has prepared in a goroutine of its own.
func (t *tasks) launch(task func()) {
	t.add(1)
	go task()
}

func (t *tasks) end() { t.add(-1) }

func (t *tasks) add(change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += change
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns when none is left.
func (t *tasks) wait() {
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
