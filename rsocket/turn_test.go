package rsocket

import (
	"errors"
	"io"
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

// TestRSK_9_ACopyWhoseDeadlinePassesInItsReader sends what the reader returns afterwards, and counts it.
func TestRSK_9_ACopyWhoseDeadlinePassesInItsReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := a.ReadFrom(call(func(p []byte) (int, error) {
			time.Sleep(2 * time.Second)
			return copy(p, "x"), nil
		}))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.EqualValues(t, 1, n)
		require.NoError(t, a.CloseWrite())
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, "x", string(got))
	})
}

// TestRSK_9_ADeadlineThatIsReplacedAsItPasses ends no call: its timer has run out, and waits for the mutex.
func TestRSK_9_ADeadlineThatIsReplacedAsItPasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		a.mu.Lock()
		a.rd.setDeadline(time.Now().Add(time.Second))
		time.Sleep(time.Second)
		a.rd.setDeadline(time.Now().Add(time.Hour))
		a.mu.Unlock()
		synctest.Wait()
		_, err := b.Write([]byte("x"))
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err)
	})
}
