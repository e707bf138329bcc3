//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/testproc"
)

// TestUnreadDemo: if its output is not read, the demo ends, and leaves neither files nor targets.
func TestUnreadDemo(t *testing.T) {
	testContext(t) // skips the test if no target starts
	errs := testproc.Unread(t, childEnv+"=1", "demo", "-records", "9", "-writers", "1")
	require.Contains(t, errs, "walog: write /dev/stdout: broken pipe")
}
