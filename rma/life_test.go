package rma

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A runModel is the state of run, and what there is for it to do.
type runModel struct {
	a       activity
	at      int // what run does
	revokes int
	probed  bool // a probe was posted whose completion was not taken
	adds    int  // revocations that are to come
}

// What run does.
const (
	looks   = iota // at what there is to revoke, with mu
	revokes        // it does, without mu
	leaves         // it does what is left, without mu, before it waits
	sleeps
)

// next are the states that may follow.
func (s runModel) next(t *testing.T) (all []runModel) {
	if s.adds > 0 { // one comes, from run or another goroutine
		n := s
		n.revokes, n.adds = n.revokes+1, n.adds-1
		if n.a.after(probes) {
			require.False(t, n.probed, "there is one probe at a time")
			n.probed = true
		}
		all = append(all, n)
	}
	n := s
	switch {
	case s.at == looks && s.revokes > 0:
		n.at = revokes
	case s.at == looks:
		require.True(t, n.a.after(waits))
		n.at = leaves
	case s.at == revokes:
		n.revokes, n.at = 0, looks
	case s.at == leaves:
		n.at = sleeps
	default:
		require.True(t, n.a.after(wakes), "some completion has come")
		n.at = looks
	}
	all = append(all, n)
	if n.at == looks && n.probed { // it is that of the probe
		require.True(t, n.a.after(probed))
		n.probed = false
		all = append(all, n)
	}
	return all
}

// TestNoRevocationIsForgotten explores how run and goroutines that add revocations interleave: run
// never waits while there is one, unless a probe is under way.
func TestNoRevocationIsForgotten(t *testing.T) {
	begin := runModel{adds: 4, at: leaves}
	require.True(t, begin.a.after(waits))
	seen, visited := []runModel{begin}, map[runModel]bool{begin: true}
	for len(seen) > 0 {
		s := seen[len(seen)-1]
		seen = seen[:len(seen)-1]
		if s.at == sleeps && s.revokes > 0 {
			require.True(t, s.probed, "%+v", s)
		}
		for _, n := range s.next(t) {
			if !visited[n] {
				visited[n] = true
				seen = append(seen, n)
			}
		}
	}
	require.True(t, visited[runModel{a: waitingProbed, at: sleeps, revokes: 4, probed: true}])
}

// TestStagesFollowOneAnother and never go back.
func TestStagesFollowOneAnother(t *testing.T) {
	c := &conn{}
	require.True(t, c.reach(failing))
	require.False(t, c.reach(closing), "it is beyond that")
	require.False(t, c.reach(failing))
	require.True(t, c.reach(gone))
	require.Equal(t, gone, c.stage)
}
