// Package cli contains what the commands of iwarp share: how they are called, how their errors are printed, and
// their exit statuses.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// Streams are the streams of a command. Results go to Out; errors, logs and progress to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// StreamsOf returns the streams of a command that runs.
func StreamsOf(cmd *cobra.Command) Streams {
	return Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
}

// Run runs a command and returns its error. Nothing but the command itself prints.
func Run(ctx context.Context, root *cobra.Command, args []string, s Streams) error {
	_, err := execute(ctx, root, args, s)
	return err
}

// Main runs a command, prints its error, and returns the exit status.
func Main(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	out := &counted{Writer: s.Out}
	s.Out = out
	cmd, err := execute(ctx, root, args, s)
	if out.err != nil && (err == nil || errors.Is(out.err, syscall.EPIPE)) {
		err = out.err // what was printed is lost
	}
	if err == nil {
		return Done
	}
	if errors.Is(err, ErrInterrupted) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = interruptedError{err}
	}
	f := explain(cmd, err)
	f.print(s.Err)
	printed := errors.Is(err, marks.ErrMissed) && out.n > 0 // the output says which target was missed
	if wantsJSON(args) && !printed {
		f.printJSON(out)
	}
	return f.status
}

func execute(ctx context.Context, root *cobra.Command, args []string, s Streams) (*cobra.Command, error) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(lockedErr(s.Err))
	if args == nil {
		args = []string{} // nil would be the arguments of the program
	}
	root.SetArgs(args)
	refuseUnknown(root)
	if cmd, err := checkForm(root, args); err != nil {
		return cmd, err
	}
	return root.ExecuteContextC(ctx)
}

// lockedErr returns w for several writers: the goroutine that copies the errors of a child process writes while the command
// does. A bytes.Buffer would lose what the command writes. A file needs no lock, and a child gets it unchanged.
func lockedErr(w io.Writer) io.Writer {
	switch w.(type) {
	case nil, *os.File:
		return w
	}
	return &counted{Writer: w}
}

// counted counts what is written, and keeps the first error: not every command checks the errors of its output.
type counted struct {
	io.Writer
	mu     sync.Mutex
	n      int
	err    error
	unread func(error) // called if it is a pipe that nothing reads any more; may be nil
}

// whenUnread makes counted call f when the output is a pipe that nothing reads any more.
func (c *counted) whenUnread(f func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = f
}

func (c *counted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Writer.Write(p)
	c.n += n
	if c.err == nil {
		c.err = err
	}
	if c.unread != nil && errors.Is(err, syscall.EPIPE) {
		c.unread(err)
	}
	return n, err
}

// wantsJSON reports whether the flag --json is given, even in a call that is otherwise wrong.
func wantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}
