package iwarp

// An errand is what a message asks for and what may take long: a Commit, which waits for
// a disk. The messages behind it must not wait, so it needs a goroutine. To start one costs
// 5 to 8 us, most of them because it runs on another processor. A reader that has nothing
// more to read therefore gives the right to receive away, goes on the errand itself, and
// takes the right back if it is still free. That is for the first of an RNIC: where there are
// several, the processors are awake and to give the right away costs more.
type errand struct {
	do    func()
	alone func() // do in a goroutine of its own
}

// errands prepares do: see commit.Config.Task.
func (x *receiver) errands(do func()) (start func(receiving bool)) {
	underWay := &x.qp.rnic.errands
	counted := func() {
		defer underWay.Add(-1)
		do()
	}
	e := &errand{counted, x.qp.rnic.tasks.task(counted)}
	return func(receiving bool) {
		if first := underWay.Add(1) == 1; first && receiving && x.wish == nil && !x.parks {
			x.errand = e
			return
		}
		x.qp.rnic.tasks.launch(e.alone)
	}
}

// goOnErrand does the errand. It reports whether the caller has the right to receive.
func (x *receiver) goOnErrand() (still bool) {
	e := x.errand
	x.errand = nil
	if x.rearm() { // it cannot be given away
		x.qp.rnic.tasks.launch(e.alone)
		return true
	}
	x.qp.tx.dispatch() // behind rearm: until then the lock may be kept for this reader
	e.do()
	return x.takeBack()
}

// delegate has somebody else do the errand, if there is one.
func (x *receiver) delegate() {
	if x.errand != nil {
		x.qp.rnic.tasks.launch(x.errand.alone)
		x.errand = nil
	}
}

// takeBack takes the right to receive from the poller, if that has it.
func (x *receiver) takeBack() bool {
	x.mu.Lock()
	free := x.current() == readerArmed
	if free {
		x.become(readerRunning)
	}
	x.mu.Unlock()
	if free {
		x.qp.llp.Disarm()
	}
	return free
}
