package commitperf

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Main(t.Context(), []string{"-span", "5ms", "-goal=false", "-dir", t.TempDir()}, &out, &out))
	for _, want := range []string{"none   latency", "file   latency", "goal: push / pull", "against its serial rate", "file            256"} {
		require.Contains(t, out.String(), want)
	}
	require.Error(t, Main(t.Context(), []string{"-nonsense"}, &out, &out))
}

func TestGoals(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out}
	r.goal("low", 1, 1, true)
	r.goal("high", 1, 1, false)
	require.False(t, r.missed)
	r.goal("low", 1.1, 1, true)
	require.True(t, r.missed)
	require.Contains(t, out.String(), "1.10, MISSED")
}
