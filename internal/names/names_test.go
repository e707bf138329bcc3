package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumberWithoutAName(t *testing.T) {
	names := []string{1: "one"}
	require.Equal(t, "one", Of(uint8(1), names, "Op(%d)"))
	require.Equal(t, "Op(0)", Of(uint8(0), names, "Op(%d)"))
	require.Equal(t, "0x0102", Of(uint16(0x102), names, "%#04x"))
}
