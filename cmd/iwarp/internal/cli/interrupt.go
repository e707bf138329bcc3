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

// Interruptible makes a command end soon when it is interrupted, and as interrupted. It is for a command that measures with
// processes of its own, which an interruption kills: every error is then one of the interruption, even if it looks like one of
// the peer, and what waits for those processes may wait long.
//
// Nor does a signal end the command where nothing reads its results any more, as with head behind a pipe: that is an interruption, too, since
// otherwise the files that it measures with would be left.
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
