package quota

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	type limits struct{ A, B int }
	l, def := limits{A: 1}, limits{A: 2, B: 3}
	require.NoError(t, Defaults("Limits", &l, &def))
	require.Equal(t, limits{1, 3}, l)
	require.EqualError(t, Defaults("Limits", &limits{B: -1}, &def), "iwarp: Limits.B is negative: -1")
}

func TestNegative(t *testing.T) {
	type config struct {
		Name  string
		Depth int
		Wait  time.Duration
		Rate  float64
		Pair  [2]int
		Inner struct{ A int }
	}
	require.NoError(t, Negative("Config", config{}))
	require.NoError(t, Negative("Config", config{Pair: [2]int{-1, -1}, Inner: struct{ A int }{-1}}))
	require.EqualError(t, Negative("Config", config{Depth: -2, Wait: -1}), "Config.Depth is negative: -2")
	require.EqualError(t, Negative("Config", config{Wait: -time.Second}), "Config.Wait is negative: -1s")
	require.EqualError(t, Negative("Config", config{Rate: math.Inf(-1)}), "Config.Rate is negative: -Inf")
}
