package main

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A fullProcess is a listener of a process that at first has no file descriptor left.
type fullProcess struct {
	net.Listener
	fails int
	conn  net.Conn
}

func (l *fullProcess) Accept() (net.Conn, error) {
	if l.fails--; l.fails >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.conn, nil
}

func (*fullProcess) Close() error { return nil }

// TestTooManyOpenFiles: clients that use up the descriptors do not end the server.
func TestTooManyOpenFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := net.Pipe()
		s := newStream(&fullProcess{fails: 100, conn: conn})
		c, err := s.Accept()
		require.NoError(t, err)
		require.Same(t, conn, c.(*streamConn).Conn)
		s.end()
	})
}

// TestTooManyOpenFilesAtTheEnd: they do not keep the server from its end.
func TestTooManyOpenFilesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(&fullProcess{fails: 1 << 30})
		ended := make(chan error)
		go func() {
			_, err := s.Accept()
			ended <- err
		}()
		synctest.Wait()
		s.end()
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
}
