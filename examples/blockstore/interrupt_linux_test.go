package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInterruptedInput: a second signal ends a program that waits for its input.
func TestInterruptedInput(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	addr, _ := serving(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	defer func() { require.NoError(t, w.Close()) }() // the input does not end before
	_, err = w.WriteString("x")
	require.NoError(t, err)
	client := exec.CommandContext(ctx, os.Args[0], "write", addr, "3")
	client.Env, client.Stdin = append(os.Environ(), beProgram+"=1"), r
	require.NoError(t, client.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Wait()
	}()
	require.Eventually(t, func() bool {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return err == nil && n == 0
	}, 10*time.Second, time.Millisecond, "it waits for more")
	for signalled := 0; ; signalled++ {
		select {
		case <-ended:
			require.NoError(t, ctx.Err(), "%d signals did not end it", signalled)
			require.Greater(t, signalled, 1, "the first one is noticed where a connection is")
			return
		case <-time.After(10 * time.Millisecond):
			_ = client.Process.Signal(os.Interrupt) // it may have ended
		}
	}
}
