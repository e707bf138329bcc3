package qpconn

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var worlds = model[world]{steps: world.steps, broken: world.broken, resting: world.resting}

// scenarios bound what the world does. The long scenarios run only if IWARP_EXPLORE is set: they take minutes.
var scenarios = []struct {
	name   string
	long   bool
	starts bool // the connection has not started yet
	budget budget
}{
	{"one waits before the start", false, true, budget{waits: [3]uint8{1, 0, 0}, asks: 1, eof: true, close: true, terminate: true}},
	{"one waits before the start, for a message that finds no receive", false, true, budget{waits: [3]uint8{0, 0, 1}, cancels: 1, receives: 1, eof: true, close: true, terminate: true}},
	{"one waits for the peer, which asks and ends", false, false, budget{waits: [3]uint8{1, 0, 0}, asks: 1, eof: true, close: true, noReason: true}},
	{"one waits for its work, and is cancelled", false, false, budget{waits: [3]uint8{0, 1, 0}, cancels: 1, fulls: 1, close: true, noReason: true}},
	{"one waits for a message, with and without a receive", false, false, budget{waits: [3]uint8{0, 0, 2}, cancels: 1, receives: 1, noReason: true}},
	{"one waits for a receive, and the end", false, false, budget{waits: [3]uint8{0, 0, 1}, receives: 1, eof: true, close: true, terminate: true}},
	{"two wait for the peer and for their work", false, false, budget{waits: [3]uint8{1, 1, 0}, cancels: 1}},
	{"two wait, one of them for a receive", false, false, budget{waits: [3]uint8{1, 0, 1}, receives: 1, eof: true}},
	{"one waits beside work and a full network", false, false, budget{waits: [3]uint8{1, 0, 0}, posts: 1, fulls: 1}},
	{"one waits, and a Terminate", false, false, budget{waits: [3]uint8{1, 0, 0}, asks: 1, terminate: true, eof: true}},
	{"one waits, and arming fails", false, false, budget{waits: [3]uint8{1, 1, 0}, noArm: true, cancels: 1, close: true}},
	{"no waiter, requests and work", false, false, budget{asks: 2, posts: 2, fulls: 1}},
	{"no waiter, receives, and the end", false, false, budget{asks: 1, posts: 1, receives: 1, terminate: true, eof: true, close: true}},

	{"all wait", true, false, budget{waits: [3]uint8{1, 1, 1}, receives: 1}},
	{"all wait, all kinds of ends", true, false, budget{waits: [3]uint8{1, 1, 1}, cancels: 1, receives: 1, eof: true, close: true, terminate: true}},
	{"all wait, requests and work", true, false, budget{waits: [3]uint8{1, 1, 1}, cancels: 1, asks: 1, posts: 1, fulls: 1}},
	{"two wait, are cancelled, and are back", true, false, budget{waits: [3]uint8{2, 0, 2}, cancels: 2, receives: 1, noReason: true}},
	{"two wait, everything", true, false, budget{waits: [3]uint8{1, 1, 0}, cancels: 1, asks: 1, posts: 1, fulls: 1, eof: true, close: true, terminate: true}},
	{"two wait, arming fails, everything", true, false, budget{waits: [3]uint8{1, 0, 1}, cancels: 1, asks: 1, posts: 1, receives: 1, noArm: true, eof: true, close: true, terminate: true}},
	{"one waits, out of turn, everything", true, false, budget{waits: [3]uint8{1, 0, 0}, cancels: 1, asks: 1, posts: 1, fulls: 1, eof: true, close: true, terminate: true, noReason: true}},
	{"requests and a full network", true, false, budget{asks: 3, posts: 2, fulls: 2, receives: 2, eof: true, close: true, terminate: true}},
}

// TestArbiterInEachState explores every state that the arbiter and everything around it can reach.
func TestArbiterInEachState(t *testing.T) {
	const limit = 30_000_000
	all := os.Getenv("IWARP_EXPLORE") != ""
	for _, s := range scenarios {
		if s.long && !all {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			from := world{budget: s.budget, armed: true}
			if s.starts {
				from = world{budget: s.budget, starts: true}
				from.arbiter.rx = rxUnstarted
			}
			v, err := worlds.explore(from, limit)
			require.NoError(t, err)
			t.Logf("%d states, %d steps, %d at rest", v.states, v.steps, v.atRest)
		})
	}
}

// TestExplorerNoticesALateDisarm: input is lost if Disarm runs after the mutex is released.
func TestExplorerNoticesALateDisarm(t *testing.T) {
	_, err := worlds.explore(world{budget: budget{waits: [3]uint8{1, 0, 0}, asks: 1, lateDisarm: true}, armed: true}, 1_000_000)
	require.ErrorContains(t, err, "there is input that no goroutine reads")
}
