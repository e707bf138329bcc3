package main

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fullProcess is a listener of a process that has no file descriptor left at first.
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

// TestTooManyOpenFilesAtTheEnd do not keep it from its end.
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

// TestConnectionThatIsLeft: go-nfs leaves a connection whose RPC it cannot parse. It is closed, or clients could use up the descriptors. One
// that is read from may be idle.
func TestConnectionThatIsLeft(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, conn := net.Pipe()
			s := newStream(&fullProcess{conn: conn})
			c, err := s.Accept()
			require.NoError(t, err)
			go func() {
				b := make([]byte, 10)
				for first := true; first || reads; first = false {
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			}()
			_, err = client.Write([]byte("no RPC"))
			require.NoError(t, err)
			require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
			_, err = client.Read(make([]byte, 1))
			if reads {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			} else {
				require.ErrorIs(t, err, io.EOF)
			}
			s.end()
		})
	}
}
