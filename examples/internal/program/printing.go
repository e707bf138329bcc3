package program

import (
	"context"
	"io"
	"os/signal"
	"sync"
	"syscall"
)

// Printing calls f with a writer to out, and a context that ends when a write to out fails. It then returns the error of the write: the
// output is missing or incomplete.
func Printing(ctx context.Context, out io.Writer, f func(ctx context.Context, out io.Writer) error) error {
	p := &printer{out: out}
	ctx, p.end = context.WithCancelCause(ctx)
	defer p.end(nil)
	err := f(ctx, p)
	if failed := p.failure(); failed != nil {
		return failed
	}
	return err
}

// A printer remembers the first failed write.
type printer struct {
	out io.Writer
	end context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err == nil {
			p.err = err
			p.end(err)
		}
	}
	return n, err
}

func (p *printer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// OutlivePipe makes a write to a pipe that nothing reads any more, such as a pipe to head, return an error until restore is called.
// Otherwise a signal ends the process at once, and leaves behind what it would have removed later: its files, and the processes that
// it has started.
func OutlivePipe() (restore func()) {
	signal.Ignore(syscall.SIGPIPE)
	return func() { signal.Reset(syscall.SIGPIPE) }
}
