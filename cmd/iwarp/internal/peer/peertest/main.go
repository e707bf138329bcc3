// Package peertest lets the test program of a package also run as the processes that its command starts.
package peertest

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// Main runs command with the arguments behind words if the process was started with these words, as a
// command does when it starts itself; otherwise it runs the tests, and fails if they leave a goroutine.
func Main(m *testing.M, command func(args []string) error, words ...string) {
	if args := os.Args[1:]; len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
		if err := command(args[len(words):]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // of the children: they need not wait for reports
	goleak.VerifyTestMain(m)
}
