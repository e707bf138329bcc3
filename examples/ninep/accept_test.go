package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A fullProcess is a listener of a process that at first has no file descriptor left.
type fullProcess struct {
	net.Listener
	fails  int
	conns  chan net.Conn
	closed sync.Once
}

func (l *fullProcess) Accept() (net.Conn, error) {
	if l.fails--; l.fails >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *fullProcess) Close() error {
	l.closed.Do(func() { close(l.conns) })
	return nil
}

// A once is a handler that reports a connection.
type once chan struct{}

func (o once) Handle(io.ReadCloser, io.WriteCloser) error {
	close(o)
	return nil
}

// TestTooManyOpenFiles: clients that use up the descriptors do not end the server.
func TestTooManyOpenFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		_, conn := net.Pipe()
		l := &fullProcess{fails: 100, conns: make(chan net.Conn, 1)}
		l.conns <- conn
		ended, served := make(chan error, 1), make(once)
		go func() { ended <- serveTCP(ctx, l, served, slog.New(slog.DiscardHandler)) }()
		select {
		case <-served:
		case err := <-ended:
			t.Fatalf("the server has ended: %v", err)
		}
		stop()
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
}
