package attack

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

var told = Target{STag: 0x01020304, TO: 0x1000, Len: 4096, Else: []stag.STag{5, 6}, NQN: "nqn.2026-11.org.example:target"}

// TestConversationsComeAgain: the same layer, seed and number give the same conversation. Another seed mostly gives
// another one.
func TestConversationsComeAgain(t *testing.T) {
	for _, l := range Layers() {
		different := 0
		for n := range uint64(200) {
			c := Make(l, 1, n, told)
			require.Equal(t, c, Make(l, 1, n, told), "%s %d", l, n)
			if !slices.EqualFunc(c.Steps, Make(l, 2, n, told).Steps, func(a, b Step) bool { return string(a.Data) == string(b.Data) }) {
				different++
			}
		}
		require.Greater(t, different, 150, l)
	}
}

// TestEveryLayerIsBentInEveryWay: some conversations are left as they are.
func TestEveryLayerIsBentInEveryWay(t *testing.T) {
	for _, l := range Layers() {
		ways, good := make(map[string]int), 0
		for n := range uint64(1500) {
			c := Make(l, 7, n, told)
			if len(c.Bent) == 0 {
				good++
			}
			for _, how := range c.Bent {
				ways[how]++
			}
			require.NotEmpty(t, c.Steps)
		}
		require.NotZero(t, good, l)
		for _, how := range Bends() {
			require.NotZero(t, ways[how], "%s is never bent by %s", l, how)
		}
	}
}

// TestAttackersThatWereToldNothing: they attack all the same.
func TestAttackersThatWereToldNothing(t *testing.T) {
	for _, l := range Layers() {
		for n := range uint64(1000) {
			require.NotEmpty(t, Make(l, 3, n, Target{}).Steps)
		}
	}
}

// TestHeadersThatAreBentTwice: a segment that was made untagged has a shorter header than an untagged segment should.
func TestHeadersThatAreBentTwice(t *testing.T) {
	for n := range uint64(10_000) {
		require.NotEmpty(t, Make(DDP, 1, n, told).Steps)
	}
}

func TestActsHaveNames(t *testing.T) {
	require.Equal(t, "cookie", Cookie.String())
	require.Equal(t, "act 99", Act(99).String())
}
