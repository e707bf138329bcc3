package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/powercut"
	"github.com/goiwarp/iwarp/interop/wire"
)

func TestParseSabotages(t *testing.T) {
	none, err := parseSabotages(powercut.Honest)
	require.NoError(t, err)
	require.Nil(t, none)
	chosen, err := parseSabotages("rtr,terminate")
	require.NoError(t, err)
	require.Equal(t, []string{"rtr", "terminate"}, []string{chosen[0].name, chosen[1].name})
	for _, bad := range []string{"", "nosync", "rtr,", "rtr terminate"} {
		_, err := parseSabotages(bad)
		require.ErrorContains(t, err, "terminate, solicited, rtr", "%q", bad)
	}
}

// TestSabotagesAreLookedFor: each sabotage has cases in stock siw, which CI can run in one boot and which check what the
// sabotage spoils.
func TestSabotagesAreLookedFor(t *testing.T) {
	l := &lab{config: config{planted: sabotages}}
	var names []string
	for _, c := range l.selected(stock) {
		names = append(names, c.Name)
		e := c.Expected()
		switch s := l.sabotageOf(c); {
		case errors.Is(s.shows, wire.ErrTerminate):
			require.NotEqual(t, e.Terminate.Layer, e.Terminate.Type, "%s: exchanging them shows", c.Name)
		case errors.Is(s.shows, wire.ErrSends):
			require.Contains(t, e.Sends, wire.SendSolicited, c.Name)
		case errors.Is(s.shows, wire.ErrRTR):
			require.Equal(t, wire.Write, *e.RTR, c.Name)
		default:
			require.Fail(t, "nothing would show it", s.name)
		}
	}
	var want []string
	for _, s := range sabotages {
		want = append(want, s.cases...)
	}
	require.ElementsMatch(t, want, names)
	require.Empty(t, l.selected(withKnobs))
	require.Nil(t, l.sabotageOf(&matrix.Case{Name: "crc/on/initiator"}))
}

func TestSabotageIsJudgedByTheCapture(t *testing.T) {
	s := sabotages[0]
	noticed, _ := s.judge(fmt.Errorf("capture.pcap: %w: sent 2/1/05", s.shows))
	require.True(t, noticed)
	for _, capture := range []error{nil, errors.New("no such file"), wire.ErrRTR} {
		noticed, why := s.judge(capture)
		require.False(t, noticed)
		require.Contains(t, why, "was not noticed")
	}
}

// TestSabotagedSourcesCompile: the texts to change are found, and the original files stay as they are.
func TestSabotagedSourcesCompile(t *testing.T) {
	dir := t.TempDir()
	overlay, err := plant(t.Context(), sabotages, dir)
	require.NoError(t, err)
	copies, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.Len(t, copies, len(sabotages))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "github.com/goiwarp/iwarp/rdmap").CombinedOutput()
	require.NoError(t, err, string(out))

	broken := slices.Clone(sabotages[:1])
	broken[0].changes = edits{{"a text that is not there", ""}}
	_, err = plant(t.Context(), broken, dir)
	require.ErrorContains(t, err, "the source has changed")
}
