package kv

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// hangs makes a replica that accepts connections, but sends nothing on them.
func (w *world) hangs(which int) {
	w.Helper()
	l, err := transport.Listen(w.context(), w.network, "", transport.Options{})
	require.NoError(w, err)
	w.Cleanup(func() { _ = l.Close() })
	w.addrs[which] = l.Addr().String()
}

// dials calls Dial, and also returns how long it took.
func (w *world) dials(limit time.Duration) (*Client, time.Duration, error) {
	w.Helper()
	key, err := TenantKey(testMaster, "alpha")
	require.NoError(w, err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	c, err := Dial(ctx, &ClientConfig{Network: w.network, Primary: w.addrs[0], Backup: w.addrs[1], Tenant: "alpha", Key: key})
	return c, time.Since(began), err
}

// TestReplicaThatHangs: it delays neither Dial nor Get.
func TestReplicaThatHangs(t *testing.T) {
	for which, name := range []string{"primary", "backup"} {
		t.Run(name, func(t *testing.T) {
			stored(t, func(t *testing.T, w *world, c *Client) {
				for i := range 4 {
					w.put(c, keyOf(i), "value")
				}
				w.hangs(which)
				c, took, err := w.dials(time.Second)
				require.NoError(t, err)
				require.Zero(t, took)
				began := time.Now()
				for i := range 4 {
					got, err := c.Get(w.context(), []byte(keyOf(i)))
					require.NoError(t, err)
					require.Equal(t, "value", string(got))
				}
				require.NoError(t, c.Close())
				require.Zero(t, time.Since(began))
			})
		})
	}
}

// answersLate puts a wire in front of a replica, which connects to the replica some time after it has accepted a
// connection.
func (w *world) answersLate(which int, after time.Duration) {
	w.Helper()
	to := w.addrs[which]
	l, err := transport.Listen(w.context(), w.network, "", transport.Options{})
	require.NoError(w, err)
	w.addrs[which] = l.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(after)
			far, err := transport.Dial(context.Background(), w.network, to, transport.Options{})
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, c := range [][2]net.Conn{{near, far}, {far, near}} {
				all.Go(func() {
					_, _ = io.Copy(c[0], c[1])
					_ = c[0].Close()
				})
			}
		}
	})
	w.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
}

// TestGetWaitsForTheFirstAnswer: Dial has not waited for a replica, but Get does if the other replica cannot answer.
func TestGetWaitsForTheFirstAnswer(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "value")
		w.answersLate(1, time.Second)
		late, _, err := w.dials(time.Second)
		require.NoError(t, err)
		defer late.Close()
		w.hangs(1)
		never, _, err := w.dials(time.Second)
		require.NoError(t, err)
		defer never.Close()
		w.kill(w.primary)

		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = late.Get(ctx, []byte("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		got, err := late.Get(w.context(), []byte("a"))
		require.NoError(t, err)
		require.Equal(t, "value", string(got))
		require.Equal(t, time.Second, time.Since(began))

		_, err = never.Get(w.context(), []byte("a"))
		require.ErrorIs(t, err, ErrUnavailable)
		require.NotErrorIs(t, err, errConnecting)
		require.Equal(t, dialTimeout, time.Since(began))
	})
}

// TestDialGoesOnWhileAReplicaHangs: the other replica serves at a later attempt.
func TestDialGoesOnWhileAReplicaHangs(t *testing.T) {
	stored(t, func(t *testing.T, w *world, _ *Client) {
		w.kill(w.backup)
		w.hangs(0)
		time.AfterFunc(time.Second, w.startBackup)
		c, took, err := w.dials(2 * dialTimeout)
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, time.Second)
		require.Less(t, took, dialTimeout, "the first attempt at the one that hangs takes longer")
		require.NoError(t, c.Close())
	})
}

// TestDialSaysWhatEachReplicaDid: whether ctx or both first attempts have ended.
func TestDialSaysWhatEachReplicaDid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.hangs(0)
		w.addrs[1] = "nowhere"
		_, took, err := w.dials(time.Second)
		require.Equal(t, time.Second, took)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "replica "+w.addrs[0]+": kv: it has not answered yet")
		require.ErrorContains(t, err, "replica nowhere: ")

		_, took, err = w.dials(2 * dialTimeout)
		require.Equal(t, dialTimeout, took)
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "replica "+w.addrs[0]+": ")
		require.ErrorContains(t, err, "replica nowhere: ")
	})
}
