package model

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A reference states again what a controller with one I/O queue does, without commands: states and edges as in the
// specification of the example, section 3.2.
type reference struct {
	state   state
	wantEN  bool // CC.EN and CC.SHN that were written during a reset
	wantSHN bool
	queue   bool // the I/O queue is connected, or its connection has not yet ended
	running int  // commands with which a back end has begun, on queues that may have ended
}

func (m *reference) enable() { m.state = ready }

func (m *reference) shut() {
	if m.state == ready {
		m.state = shutting
	}
}

// settle completes a reset.
func (m *reference) settle() {
	if m.state != resetting || m.queue || m.running > 0 {
		return
	}
	m.state = disabled
	if m.wantEN {
		m.enable()
		if m.wantSHN {
			m.shut()
		}
	}
}

func (m *reference) write(en, shn bool) {
	switch {
	case m.state == resetting:
		m.wantEN, m.wantSHN = en, shn
	case !en && m.state != disabled:
		m.state, m.wantEN = resetting, false
	case en && m.state == disabled:
		m.enable()
	}
	if en && shn {
		m.shut()
	}
	m.settle()
}

// csts is what a host reads.
func (m *reference) csts() capsule.CSTS {
	switch m.state {
	case ready, resetting:
		return capsule.CSTS{RDY: true}
	case shutting, flushing:
		return capsule.CSTS{RDY: true, SHST: capsule.SHSTOccurring}
	case shut:
		return capsule.CSTS{SHST: capsule.SHSTComplete}
	default:
		return capsule.CSTS{}
	}
}

// A walk is one sequence of events, and its results.
type walk struct {
	*world
	ref       reference
	admin, io *line
	execute   []Action // begun, and not yet done
	begun     []Action
	flush     *Controller // of the present DoFlush
	flushes   bool        // that flush has begun
	closing   []Action
}

// The events of a walk. Each one reports whether it is possible now.
var walkEvents = []struct {
	name string
	do   func(*walk) bool
}{
	{"EN", func(k *walk) bool { return k.cc(0x460001) }},
	{"EN 0", func(k *walk) bool { return k.cc(0x460000) }},
	{"SHN", func(k *walk) bool { return k.cc(0x464001) }},
	{"connect", (*walk).connect},
	{"io lost", func(k *walk) bool {
		if !k.ref.queue {
			return false
		}
		k.loseIO()
		return true
	}},
	{"write", (*walk).write},
	{"begin", (*walk).begin},
	{"finish", (*walk).finish},
	{"flush", func(k *walk) bool {
		if k.flush == nil || k.flushes {
			return false
		}
		if _, k.flushes = k.target.Flush(k.flush); !k.flushes {
			k.flush = nil
		}
		require.Equal(k.t, k.ref.state == shutting, k.flushes)
		if k.flushes {
			k.ref.state = flushing
		}
		return true
	}},
	{"flushed", func(k *walk) bool {
		if !k.flushes {
			return false
		}
		k.flushes = false
		if k.ref.state == flushing {
			k.ref.state = shut
		}
		k.target.Flushed(k.flush, capsule.Success)
		return true
	}},
	{"closed", func(k *walk) bool {
		if len(k.closing) == 0 {
			return false
		}
		k.closing = k.closing[1:]
		k.loseIO()
		return true
	}},
	{"end", func(k *walk) bool {
		if k.ref.state == ended {
			return false
		}
		k.ref.state = ended
		k.tick(time.Hour)
		return true
	}},
}

func newWalk(t *testing.T) *walk {
	w := newWorld(t)
	w.add(namespace(1))
	k := &walk{world: w, admin: w.arrive(hostA, idA, 0, 32)}
	k.admin.ok(k.admin.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) { m.KATO = 1000 }))
	for _, do := range []Do{DoExecute, DoFlush, DoClose} {
		w.hold[do] = true
	}
	return k
}

// sort sorts the actions that the engine got.
func (k *walk) sort() {
	for _, a := range k.held {
		switch a.Do {
		case DoExecute:
			k.execute = append(k.execute, a)
		case DoFlush:
			require.Nil(k.t, k.flush, "there is one at a time")
			k.flush = a.Controller
		case DoClose:
			l := k.lines[a.Queue]
			require.False(k.t, l.isClosed(), "a queue is closed once")
			require.False(k.t, l.gone)
			k.closed = append(k.closed, l)
			if l == k.io {
				k.closing = append(k.closing, a)
			}
		default:
			k.t.Fatalf("action %v was not held", a.Do)
		}
	}
	k.held = nil
}

func (k *walk) cc(v uint64) bool {
	if k.ref.state == ended {
		return false
	}
	k.admin.setCC(v)
	k.ref.write(v&1 == 1, v&0x4000 != 0)
	return true
}

func (k *walk) connect() bool {
	if k.ref.queue {
		return false
	}
	l := k.arrive(hostA, idA, 1, 32)
	r := l.connect(storage, 1)
	if k.ref.state != ready {
		require.False(k.t, r.Status.OK())
		l.lose()
		return true
	}
	l.ok(r)
	k.io, k.ref.queue = l, true
	return true
}

func (k *walk) loseIO() {
	if !k.ref.queue {
		return
	}
	k.closing = nil
	k.ref.queue = false
	k.io.lose()
	k.ref.settle()
}

// write sends a command. A closed queue answers nothing; a queue of a controller that is shut down answers with that
// status.
func (k *walk) write() bool {
	if !k.ref.queue || len(k.execute)+len(k.begun) > 2 {
		return false
	}
	n := len(k.io.answers)
	k.io.send(k.io.rw(capsule.OpWriteZeroes, 0, 1))
	shutDown := !k.io.isClosed() && (k.ref.state == shutting || k.ref.state == flushing || k.ref.state == shut)
	require.Equal(k.t, shutDown, len(k.io.answers) > n, "answered at once")
	return true
}

// begin begins with a command: never with a command of a queue that has ended.
func (k *walk) begin() bool {
	if len(k.execute) == 0 {
		return false
	}
	a := k.execute[0]
	k.execute = k.execute[1:]
	l := k.lines[a.Queue]
	alive := !l.gone && !l.isClosed()
	require.Equal(k.t, alive, a.Queue.Begin(a.Ref))
	if alive {
		k.begun = append(k.begun, a)
		k.ref.running++
	}
	return true
}

func (k *walk) finish() bool {
	if len(k.begun) == 0 {
		return false
	}
	a := k.begun[0]
	k.begun = k.begun[1:]
	l := k.lines[a.Queue]
	alive, n := !l.gone && !l.isClosed(), len(l.answers)
	k.ref.running--
	k.do(a.Queue.Finish(a.Ref, capsule.Success, nil))
	require.Equal(k.t, alive, len(l.answers) == n+1, "answered")
	k.do(a.Queue.Finish(a.Ref, capsule.Success, nil))
	k.ref.settle()
	return true
}

// check compares the model with the reference.
func (k *walk) check(path []int) {
	name := func() string {
		var names []string
		for _, i := range path {
			names = append(names, walkEvents[i].name)
		}
		return fmt.Sprint(names)
	}
	c := k.admin.q.ctrl
	require.Equal(k.t, k.ref.state, c.state(), "%s", name())
	if k.ref.state == ended {
		require.True(k.t, k.admin.isClosed())
		require.True(k.t, k.io == nil || k.io.gone || k.io.isClosed(), "%s", name())
		require.Zero(k.t, k.target.controllers)
		return
	}
	require.Equal(k.t, k.ref.csts(), k.admin.csts(), "%s", name())
	require.False(k.t, k.ref.state == disabled && c.io > 0, "%s", name())
}

// fingerprint identifies the state: two walks with the same fingerprint continue in the same way.
func (k *walk) fingerprint() string {
	ioClosed := k.io != nil && k.io.isClosed()
	var old []bool
	for _, a := range slices.Concat(k.execute, k.begun) {
		old = append(old, k.lines[a.Queue] != k.io || k.io.gone)
	}
	return fmt.Sprint(k.ref, ioClosed, len(k.execute), len(k.begun), old, k.flush != nil, k.flushes, len(k.closing), k.admin.q.ctrl.io)
}

// TestNVME_39_Exploration visits all states that any sequence of these events reaches, each by a shortest sequence.
func TestNVME_39_Exploration(t *testing.T) {
	seen := map[string]bool{}
	level := [][]int{nil}
	for len(level) > 0 {
		var next [][]int
		for _, path := range level {
			for e := range walkEvents {
				longer := append(slices.Clone(path), e)
				k := newWalk(t)
				possible := true
				for _, i := range longer {
					possible = walkEvents[i].do(k)
					k.sort()
				}
				if !possible {
					continue
				}
				k.check(longer)
				if f := k.fingerprint(); !seen[f] && k.ref.state != ended {
					seen[f] = true
					next = append(next, longer)
				}
			}
		}
		level = next
	}
	require.Greater(t, len(seen), 300)
	t.Logf("%d states", len(seen))
}
