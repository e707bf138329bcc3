package cli

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// tidyTime is how long an interrupted command may take to end.
const tidyTime = 2 * time.Second

// Interruptible makes a command end soon, and with ErrInterrupted, when it is interrupted. It is for a command that measures with
// processes of its own, which an interruption kills: every error is then due to the interruption, even if it looks like an error of
// the peer, and code that waits for those processes may wait long.
//
// A pipe that nothing reads any more, as with head, does not end the command by a signal, but is an interruption, too: otherwise
// the files with which it measures would be left.
func Interruptible(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		signal.Ignore(syscall.SIGPIPE)
		ctx, end := context.WithCancelCause(cmd.Context())
		defer end(nil)
		cmd.SetContext(ctx)
		if out, ok := cmd.OutOrStdout().(*counted); ok {
			out.whenUnread(end)
		}
		done := make(chan error, 1)
		go func() { done <- run(cmd, args) }()
		select {
		case err = <-done:
		case <-ctx.Done():
			select {
			case err = <-done:
			case <-time.After(tidyTime):
				return ctx.Err()
			}
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
}
