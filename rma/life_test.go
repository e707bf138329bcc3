package rma

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStagesFollowOneAnother: they never go back.
func TestStagesFollowOneAnother(t *testing.T) {
	c := &conn{}
	require.True(t, c.reach(failing))
	require.False(t, c.reach(closing), "it is beyond that")
	require.False(t, c.reach(failing))
	require.True(t, c.reach(gone))
	require.Equal(t, gone, c.stage)
}
