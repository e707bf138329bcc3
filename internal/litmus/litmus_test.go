package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

var update = flag.Bool("update", false, "write docs/ordering.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const docPath = "../../docs/ordering.md"

func TestDocumentIsUpToDate(t *testing.T) {
	b := new(strings.Builder)
	require.NoError(t, writeDoc(b))
	if *update {
		require.NoError(t, os.WriteFile(docPath, []byte(b.String()), 0o644))
	}
	doc, err := os.ReadFile(docPath)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(doc), "go test ./internal/litmus -run Document -update")
}

func TestMessages(t *testing.T) { runGroup(t, messages) }
func TestReads(t *testing.T)    { runGroup(t, readPrograms) }
func TestStreams(t *testing.T)  { runGroup(t, streamPrograms) }
func TestAtomics(t *testing.T)  { runGroup(t, atomicPrograms) }
func TestCommits(t *testing.T)  { runGroup(t, commitPrograms) }

// runGroup runs each program over all layers until every required outcome has occurred.
func runGroup(t *testing.T, programs []program) {
	runs := 1000
	if raceorder.Enabled {
		runs = 50
	}
	rigs := make([]*rig, len(allLayers))
	for i, l := range allLayers {
		g, err := newRig(t.Context(), l, 1)
		require.NoError(t, err)
		defer func() { require.NoError(t, g.close()) }()
		rigs[i] = g
	}
	for i := range programs {
		k, err := compile(&programs[i])
		require.NoError(t, err)
		ts := make([]*tally, len(rigs))
		for i, g := range rigs {
			ts[i] = newTally(k, g.layer)
		}
		for try := 0; try == 0 || try < 200 && len(unseen(ts)) > 0; try++ {
			for i, g := range rigs {
				n := runs
				if g.layer.geometry == large {
					n /= 4
				}
				ts[i].use(t.Context(), g, n)
				require.NoError(t, judge(ts[i:i+1], false))
			}
		}
		require.NoError(t, judge(ts, true))
	}
}
