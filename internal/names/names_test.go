package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumberWithoutAName(t *testing.T) {
	names := []string{1: "one"}
	require.Equal(t, "one", Of("Op", names, 1))
	require.Equal(t, "Op(0)", Of("Op", names, 0))
	require.Equal(t, "Op(2)", Of("Op", names, 2))
}
