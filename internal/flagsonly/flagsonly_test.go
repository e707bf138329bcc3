package flagsonly

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArgumentsAreRefused runs in a process of its own.
func TestArgumentsAreRefused(t *testing.T) {
	const child = "FLAGSONLY_TEST_IS_CHILD"
	if os.Getenv(child) != "" {
		os.Args = []string{"tool", "foo", "-list"}
		Parse("tool")
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestArgumentsAreRefused$")
	cmd.Env = append(os.Environ(), child+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	_ = cmd.Run() // it fails
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	require.Equal(t, "tool: [\"foo\" \"-list\"]: there are no arguments\n", errs.String())
}
