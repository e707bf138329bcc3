package rsocket

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRSK_9_CallsBehindACopy end by their deadline, and by Close, although the reader or writer of the copy does not.
func TestRSK_9_CallsBehindACopy(t *testing.T) {
	for _, way := range []struct {
		name     string
		copies   func(c *Conn, g gate) error
		call     func(c *Conn) error
		deadline func(c *Conn, t time.Time) error
	}{
		{"write", func(c *Conn, g gate) error {
			_, err := c.ReadFrom(g)
			return err
		}, func(c *Conn) error {
			_, err := c.Write([]byte("x"))
			return err
		}, (*Conn).SetWriteDeadline},
		{"read", func(c *Conn, g gate) error {
			_, err := c.WriteTo(g)
			return err
		}, func(c *Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}, (*Conn).SetReadDeadline},
	} {
		t.Run(way.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := pair(t, "pipe", nil, nil)
				_, err := b.Write([]byte("hello"))
				require.NoError(t, err)
				g := gate{make(chan struct{}), make(chan struct{})}
				copied, called := make(chan error, 1), make(chan error, 1)
				go func() { copied <- way.copies(a, g) }()
				<-g.entered
				begin := time.Now()
				require.NoError(t, way.deadline(a, begin.Add(time.Second)))
				go func() { called <- way.call(a) }()
				select {
				case err := <-called:
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					require.Equal(t, time.Second, time.Since(begin))
				case <-time.After(time.Minute):
					t.Error("the deadline passes")
				}
				require.NoError(t, way.deadline(a, time.Time{}))
				go func() { called <- way.call(a) }()
				synctest.Wait()
				require.Empty(t, called, "it waits")
				go func() { _ = b.Close() }()
				require.NoError(t, a.Close())
				synctest.Wait()
				select {
				case err := <-called:
					require.ErrorIs(t, err, net.ErrClosed)
				default:
					t.Error("Close ends it")
				}
				close(g.opened)
				require.True(t, errors.Is(<-copied, net.ErrClosed))
			})
		})
	}
}
