//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnreadDemo: where nothing reads what it prints the demo ends, and leaves neither files nor targets.
func TestUnreadDemo(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	var errs bytes.Buffer
	c := exec.CommandContext(testContext(t), exe, "demo", "-records", "9", "-writers", "1")
	c.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+dir, "GORACE=atexit_sleep_ms=0")
	c.Stdout, c.Stderr = w, &errs
	c.WaitDelay = 5 * time.Second // the targets inherit the pipe for errors, and may outlive the demo for a moment
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode(), "no signal ends it")
	require.Contains(t, errs.String(), "walog: write /dev/stdout: broken pipe")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
