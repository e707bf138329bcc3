// Package program ends the examples with an exit status that scripts can rely on.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/goiwarp/iwarp/internal/errtext"
)

// A UsageError says that a program was called wrongly.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Called makes the error of flag.FlagSet.Parse a UsageError, unless help was asked for.
func Called(err error) error {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return UsageError(err.Error())
}

// AsksForHelp reports whether an argument in place of a command asks for help.
func AsksForHelp(arg string) bool {
	switch arg {
	case "help", "-h", "-help", "--help":
		return true
	}
	return false
}

// Status prints the error of a program, in one line, and returns the exit status: 0 if there is none, or help was asked
// for; 2 if the program was called wrongly; else 1.
func Status(name string, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, errtext.OneLine(err.Error()))
	if errors.As(err, new(UsageError)) {
		return 2
	}
	return 1
}

// Main runs a program, and ends the process with the status of its error. A first signal ends the context, a second one
// the process.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	status := Status(name, run(ctx), os.Stderr)
	stop()
	os.Exit(status)
}
