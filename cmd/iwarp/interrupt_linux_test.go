package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// TestInterruptedMeasurement: the end of the process that is killed with the command is no failure of a peer.
func TestInterruptedMeasurement(t *testing.T) {
	beIwarp(t)
	t.Setenv("TERM", "xterm-256color") // progress is for terminals
	program, user := openTerminal(t)
	var screen watch
	go func() { _, _ = io.Copy(&screen, user) }() // it ends with the terminal
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	status := make(chan int, 1)
	go func() {
		args := []string{"perf", "--op", "write", "--size", "4K", "--span", "5ms", "--pairs", "1000000"}
		status <- cli.Main(ctx, rootCommand(), args, cli.Streams{Out: io.Discard, Err: program})
	}()
	screen.waitFor(t, "pair 2 of")
	interrupt()
	screen.waitFor(t, "iwarp perf: ")
	require.Equal(t, cli.Interrupted, <-status)
	screen.waitFor(t, "iwarp perf: interrupted")
}
