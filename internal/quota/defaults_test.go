package quota

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	type limits struct{ A, B int }
	l, def := limits{A: 1}, limits{A: 2, B: 3}
	require.NoError(t, Defaults("Limits", &l, &def))
	require.Equal(t, limits{1, 3}, l)
	require.EqualError(t, Defaults("Limits", &limits{B: -1}, &def), "iwarp: Limits.B is negative: -1")
}
