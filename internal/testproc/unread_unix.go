//go:build unix

package testproc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Unread runs the test's program, which env turns into another program, with an output that nothing reads. The program must end with
// status 1, without a signal, and leave no file and no process. Unread returns its error output.
func Unread(t *testing.T, env string, args ...string) (errs string) {
	t.Helper()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	var stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), env, "TMPDIR="+dir, "GORACE=atexit_sleep_ms=0")
	c.Stdout, c.Stderr = w, &stderr
	c.WaitDelay = 20 * time.Second // its child processes inherit the pipe for errors, and may outlive it briefly
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode(), "no signal ends it")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	return stderr.String()
}
