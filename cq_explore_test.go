package iwarp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// A cqWorld is a CQ, goroutines that wait for one completion each, and what happens to it. Each
// goroutine does one step of CQ.wait at a time, in any order: those that no lock holds together.
type cqWorld struct {
	cq      *CQ
	waiters []waitSteps
	left    [cqEvents]int // of each event
}

// The events.
const (
	cqPush = iota
	cqPushSolicited
	cqServes // another QP
	cqCancel // the context of the first waiter
	cqSignal
	cqClose
	cqEvents
)

// A waitSteps is a goroutine in CQ.wait.
type waitSteps struct {
	w         *cqWaiter
	solicited bool
	cancelled bool
	over      bool // it has seen that its wait is
	at        waitStep
}

type waitStep int

const (
	looks waitStep = iota
	enlists
	looksAgain
	sleeps
	delists
	hasReturned
)

// A cqStart is how a world begins.
type cqStart struct {
	solicited []bool // for each waiter
	events    [cqEvents]int
}

func (s *cqStart) world(r *RNIC) *cqWorld {
	x := &cqWorld{cq: newCQ(r, 8), left: s.events}
	for _, solicited := range s.solicited {
		x.waiters = append(x.waiters, waitSteps{solicited: solicited})
	}
	return x
}

// steps are what may happen now: steps of waiters from 0 on, events from cqEventBase on. A waiter
// that has a token and whose context has ended may see either.
func (x *cqWorld) steps() (can []int) {
	for i := range x.waiters {
		w := &x.waiters[i]
		if w.at == hasReturned {
			continue
		}
		if w.at != sleeps || len(w.w.token) > 0 {
			can = append(can, i)
		}
		if w.at == sleeps && w.cancelled {
			can = append(can, cqCancelBase+i)
		}
	}
	for e, n := range x.left {
		if n > 0 {
			can = append(can, cqEventBase+e)
		}
	}
	return can
}

const (
	cqCancelBase = 100
	cqEventBase  = 200
)

func (x *cqWorld) step(s int) {
	switch {
	case s >= cqEventBase:
		x.happens(s - cqEventBase)
	case s >= cqCancelBase:
		x.waiters[s-cqCancelBase].over = true
		x.waiters[s-cqCancelBase].at = delists
	default:
		x.waiters[s].step(x.cq)
	}
}

func (x *cqWorld) happens(event int) {
	x.left[event]--
	switch event {
	case cqPush:
		x.cq.push(WC{QP: noQP, Op: OpRecv})
	case cqPushSolicited:
		x.cq.push(WC{QP: noQP, Op: OpRecv, Flags: Solicited})
	case cqServes:
		x.cq.mu.Lock()
		x.cq.setSole(noQP)
		x.cq.mu.Unlock()
	case cqCancel:
		x.waiters[0].cancelled = true
	case cqSignal:
		x.cq.Signal()
	case cqClose:
		x.cq.shut()
	}
}

func (w *waitSteps) step(cq *CQ) {
	switch w.at {
	case looks:
		w.looks(cq)
	case enlists:
		w.w.Enlist()
		w.at = looksAgain
	case looksAgain:
		if w.at = sleeps; w.w.Done() {
			w.over, w.at = true, delists
		}
	case sleeps:
		<-w.w.token
		w.at = delists
	case delists:
		w.w.Delist()
		if w.at = enlists; w.over {
			w.at = looks
		}
	case hasReturned:
	}
}

func (w *waitSteps) looks(cq *CQ) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if n, signaled := cq.take(make([]WC, 1), w.solicited); n > 0 || signaled || cq.closed || w.cancelled {
		w.at = hasReturned
		return
	}
	w.w = &cqWaiter{cq: cq, solicited: w.solicited, sole: cq.sole, token: qpconn.NewToken()}
	w.over, w.at = false, enlists
}

// state describes everything that distinguishes states of the world.
func (x *cqWorld) state() string {
	s := fmt.Sprint(x.cq.wcs.Len(), x.cq.solicited, x.cq.sole != nil, x.cq.signaled, x.cq.closed, x.left)
	for i := range x.waiters {
		w := &x.waiters[i]
		s += fmt.Sprint(" | ", w.at, w.cancelled, w.over)
		if w.at != looks && w.at != hasReturned {
			s += fmt.Sprint(len(w.w.token), w.w.sole != nil, slices.Index(x.cq.waiters, w.w))
		}
	}
	return s
}

// fault describes a goroutine that sleeps although there is something for it, if no goroutine is
// awake.
func (x *cqWorld) fault() string {
	for _, w := range x.waiters {
		if w.at != hasReturned && (w.at != sleeps || len(w.w.token) > 0 || w.cancelled) {
			return ""
		}
	}
	for i, w := range x.waiters {
		if w.at == sleeps && (x.cq.has(w.solicited) || x.cq.signaled || x.cq.closed) {
			return fmt.Sprintf("waiter %d sleeps: %s", i, x.state())
		}
	}
	return ""
}

// explore visits each state that can be reached, and returns how many there are.
func (s *cqStart) explore(r *RNIC) (states int, fault string) {
	seen := make(map[string]bool)
	todo := [][]int{nil}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x := s.world(r)
		for _, step := range path {
			x.step(step)
		}
		if state := x.state(); seen[state] {
			continue
		} else {
			seen[state] = true
		}
		if f := x.fault(); f != "" {
			return len(seen), fmt.Sprintf("%s, after %v", f, path)
		}
		for _, step := range x.steps() {
			todo = append(todo, append(slices.Clone(path), step))
		}
	}
	return len(seen), ""
}

// TestNoGoroutineSleepsWhileThereIsACompletion in any order of the steps of goroutines that
// wait, of completions, of a change of the QP that uses the CQ, of a context that ends,
// of Signal, and of the end of the CQ.
func TestNoGoroutineSleepsWhileThereIsACompletion(t *testing.T) {
	r := opens(t)
	for _, start := range []cqStart{
		{[]bool{false, false, false}, [cqEvents]int{cqPush: 2, cqCancel: 1}},
		{[]bool{false, false}, [cqEvents]int{cqPush: 2, cqServes: 1, cqCancel: 1}},
		{[]bool{false, true}, [cqEvents]int{cqPush: 1, cqPushSolicited: 1, cqServes: 1}},
		{[]bool{true, false}, [cqEvents]int{cqPush: 1, cqPushSolicited: 1, cqCancel: 1}},
		{[]bool{true, false, false}, [cqEvents]int{cqPush: 1, cqPushSolicited: 1}},
		{[]bool{false, true}, [cqEvents]int{cqPush: 1, cqServes: 1, cqClose: 1}},
		{[]bool{false, true}, [cqEvents]int{cqPush: 1, cqSignal: 2, cqCancel: 1}},
	} {
		states, fault := start.explore(r)
		require.Empty(t, fault)
		t.Logf("%d states", states)
	}
}
