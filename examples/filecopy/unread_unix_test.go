//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/testproc"
)

// TestUnreadDemo: if its output is not read, the demo ends, and leaves neither files nor the server.
func TestUnreadDemo(t *testing.T) {
	errs := testproc.Unread(t, childEnv+"=1", "demo", "--size", "100000")
	require.Contains(t, errs, "filecopy: write /dev/stdout: broken pipe")
}
