// Package testproc runs a test, or the test's program, in a separate process.
package testproc

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Alone runs the rest of a test in a separate process, whose descriptors the test may count
// and limit. It reports true in that process.
func Alone(t *testing.T) bool {
	t.Helper()
	const mark = "IWARP_TEST_ALONE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=120s")
	c.Env = append(os.Environ(), mark+"="+t.Name())
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "no tests to run")
	return false
}
