package closed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIs(t *testing.T) {
	c := make(chan struct{})
	require.False(t, Is(c))
	close(c)
	require.True(t, Is(c))
	require.False(t, Is(nil))
}
