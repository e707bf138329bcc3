package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rma"
)

// kill ends a replica without warning.
func (w *world) kill(r *Replica) {
	w.Helper()
	require.NoError(w, r.Close())
}

// quick returns a context that ends early, for calls that must fail.
func (w *world) quick() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	w.Cleanup(cancel)
	return ctx
}

// TestLossOfThePrimary: Gets go to the backup at once, and changes are refused until it is back.
func TestLossOfThePrimary(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		for i := range 10 {
			w.put(c, keyOf(i), "before")
		}
		w.kill(w.primary)
		for i := range 10 {
			began := time.Now()
			got, err := c.Get(w.context(), []byte(keyOf(i)))
			require.NoError(t, err)
			require.Equal(t, "before", string(got))
			require.Zero(t, time.Since(began), "at once")
		}
		synctest.Wait() // a change that is on its way when the connection is lost is uncertain
		require.ErrorIs(t, c.Put(w.quick(), []byte(keyOf(0)), []byte("lost")), ErrUnavailable)
		w.startPrimary()
		w.settle()
		require.NoError(t, c.Close())
		c = w.client("alpha")
		w.holds(c, keyOf(0), "before")
		w.put(c, keyOf(0), "after")
		w.holds(c, keyOf(0), "after")
	})
}

// TestLossOfTheBackup: Gets go to the primary, and changes are refused until the backup is back.
func TestLossOfTheBackup(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		for i := range 10 {
			w.put(c, keyOf(i), "before")
		}
		w.kill(w.backup)
		for i := range 10 {
			got, err := c.Get(w.context(), []byte(keyOf(i)))
			require.NoError(t, err)
			require.Equal(t, "before", string(got))
		}
		for range 3 {
			err := c.Put(w.quick(), []byte(keyOf(0)), []byte("lost"))
			require.True(t, errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUncertain), "%v", err)
		}
		require.ErrorIs(t, c.Put(w.quick(), []byte(keyOf(1)), []byte("lost")), ErrUnavailable)
	})
}

// TestRestart restarts one replica, and both.
func TestRestart(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		w.put(c, "b", "1")
		require.NoError(t, c.Delete(w.context(), []byte("b")))
		w.put(c, "c", strings.Repeat("c", 10_000))
		require.NoError(t, c.Close())
		check := func() {
			w.settle()
			c := w.client("alpha")
			w.holds(c, "a", "1")
			w.lacks(c, "b")
			w.holds(c, "c", strings.Repeat("c", 10_000))
			w.put(c, "d", "2")
			w.holds(c, "d", "2")
			require.NoError(t, c.Delete(w.context(), []byte("d")))
			require.NoError(t, c.Close())
		}
		w.kill(w.primary)
		w.startPrimary()
		check()
		// The primary looks for a backup at the address that it was given.
		w.kill(w.primary)
		w.kill(w.backup)
		w.startBackup()
		w.startPrimary()
		check()
		// A new disk at the backup gets everything.
		w.kill(w.primary)
		w.kill(w.backup)
		require.NoError(t, os.Remove(filepath.Join(w.dir, "backup")))
		w.startBackup()
		require.False(t, w.backup.serving(), "a backup that has nothing must not say that there is nothing")
		key, err := TenantKey(testMaster, "alpha")
		require.NoError(t, err)
		_, err = Dial(w.quick(), &ClientConfig{Network: w.network, Primary: w.addrs[0], Backup: w.addrs[1], Tenant: "alpha", Key: key})
		require.ErrorContains(t, err, "the replica does not serve yet", "a client is told why it is rejected")
		w.startPrimary()
		check()
	})
}

// TestLogIsCompacted: it is compacted again and again, and the changes that count survive.
func TestLogIsCompacted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.half = (4*maxChange + 7) &^ 7
		w.start()
		c := w.client("alpha")
		w.put(c, "constant", "value")
		long := strings.Repeat("x", 20_000)
		for i := range 60 {
			w.put(c, keyOf(i%3), long+keyOf(i))
		}
		require.Greater(t, w.primary.log.mark.generation, uint32(3))
		require.Equal(t, w.primary.log.mark, w.backup.log.mark)
		require.NoError(t, c.Close())
		for range 2 {
			w.kill(w.backup)
			w.startBackup()
			c = w.restartPrimary()
			w.holds(c, "constant", "value")
			for i := range 3 {
				w.holds(c, keyOf(i), long+keyOf(57+i))
			}
			require.NoError(t, c.Close())
		}
	})
}

// TestPrimaryThatLostItsLog: it is refused, because its backup has more.
func TestPrimaryThatLostItsLog(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		w.kill(w.primary)
		require.NoError(t, os.Remove(filepath.Join(w.dir, "primary")))
		w.startPrimary()
		time.Sleep(time.Second)
		require.False(t, w.primary.serving())
		got, err := c.Get(w.context(), []byte("a"))
		require.NoError(t, err)
		require.Equal(t, "1", string(got))

		// With the backup's log it is a primary again, of a backup with a new log.
		w.kill(w.primary)
		w.kill(w.backup)
		require.NoError(t, os.Rename(filepath.Join(w.dir, "backup"), filepath.Join(w.dir, "primary")))
		w.startBackup()
		w.startPrimary()
		w.settle()
		require.NoError(t, c.Close())
		w.holds(w.client("alpha"), "a", "1")

		// But not the other way round: the end of a primary's log is not recorded.
		w.kill(w.primary)
		w.kill(w.backup)
		b, err := os.ReadFile(filepath.Join(w.dir, "primary"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "backup"), b, 0o600))
		_, err = Open(w.context(), w.config("backup", 1))
		require.ErrorContains(t, err, "log of a primary")
	})
}

// TestPromotion: the backup's log makes a primary, even if that primary first ends before it has a log of its own, or a
// backup. The former primary has changes that no replica was told of, and the new primary's backup refuses it.
func TestPromotion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		c, release, ended := w.halfPut("lost")
		w.kill(w.backup)
		release()
		require.ErrorIs(t, <-ended, ErrUncertain)
		w.kill(w.primary)
		require.NoError(t, c.Close())
		require.NoError(t, os.Rename(w.path("primary"), w.path("before")))
		require.NoError(t, os.Rename(w.path("backup"), w.path("primary")))
		w.addrs = [2]string{1: "none"}
		w.startPrimary()
		w.kill(w.primary)
		w.scribble("primary", 0, binary.NativeEndian.AppendUint64(nil, w.backup.log.mark.word())) // it got no further than its name
		w.startPrimary()
		name := w.primary.log.name
		w.kill(w.primary) // or it has a log of its own, and no backup yet
		w.addrs = [2]string{}
		w.start()
		require.Equal(t, name, w.primary.log.name)
		c = w.client("alpha")
		w.holds(c, "a", "1")
		w.put(c, "a", "2")

		cfg := w.config("before", 0)
		cfg.Addr, cfg.Backup = "", w.addrs[1]
		before, err := Open(w.context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = before.Close() })
		time.Sleep(10 * time.Second)
		require.False(t, before.serving())
		w.kill(before)
		w.settle()
		w.holds(c, "a", "2")
		w.put(c, "a", "3")
		w.holds(c, "a", "3")
	})
}

// held makes changes stop at a stage after stopHere was called.
func (w *world) held(at stage) {
	w.gate = make(chan chan struct{}, 1)
	w.hold = func(s stage) {
		select {
		case c := <-w.gate:
			if s != at {
				w.gate <- c
				return
			}
			<-c
		default: // nothing stops here
		}
	}
}

// stopHere stops the next change. release lets it go on.
func (w *world) stopHere() (release func()) {
	c := make(chan struct{})
	w.gate <- c
	return func() { close(c) }
}

// halfPut starts replicas and puts a. A Put of its next value stops when the value is in the primary's log. release lets
// it go on, and ended gets the result of Put.
func (w *world) halfPut(next string) (c *Client, release func(), ended chan error) {
	w.held(stageLogged)
	w.start()
	c = w.client("alpha")
	w.put(c, "a", "1")
	release = w.stopHere()
	ended = make(chan error, 1)
	go func() { ended <- c.Put(w.context(), []byte("a"), []byte(next)) }()
	require.NoError(w, w.until(func() bool { _, err := c.from(w.context(), 0, "a"); return err != nil }))
	return c, release, ended
}

// TestKeyIsBusy while a change of it is under way: the primary shows neither the old value nor the new
// one, and the backup shows one of them.
func TestKeyIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.held(stageDurable)
		w.start()
		c := w.client("alpha")
		w.put(c, "a", "old")
		w.put(c, "other", "value")
		release := w.stopHere()
		done := make(chan error, 1)
		go func() { done <- c.Put(w.context(), []byte("a"), []byte("new")) }()
		time.Sleep(time.Second) // less than the backup may take
		_, err := c.from(w.context(), 0, "a")
		require.ErrorIs(t, err, errBusy)
		got, err := c.Get(w.context(), []byte("a"))
		require.NoError(t, err)
		require.Equal(t, "old", string(got), "the backup has it, and does not show it yet")
		got2, err := c.from(w.context(), 0, "other")
		require.NoError(t, err)
		require.Equal(t, "value", got2)
		release()
		require.NoError(t, <-done)
		w.holds(c, "a", "new")
	})
}

// TestBackupThatDoesNotAnswer: the change is uncertain and the key is busy. The change is made when the connection is
// back.
func TestBackupThatDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.held(stageDurable)
		w.start()
		c := w.client("alpha")
		w.put(c, "a", "old")
		release := w.stopHere()
		require.ErrorIs(t, c.Put(w.context(), []byte("a"), []byte("new")), ErrUncertain)
		_, err := c.from(w.context(), 0, "a")
		require.ErrorIs(t, err, errBusy)
		require.ErrorIs(t, c.Put(w.context(), []byte("b"), []byte("new")), ErrUnavailable)
		release()
		w.settle()
		w.holds(c, "a", "new")
		w.put(c, "b", "new")
		w.holds(c, "b", "new")
	})
}

// TestTimeoutGoesToTheOther: over TCP, in real time, a replica that does not answer costs one timeout.
func TestTimeoutGoesToTheOther(t *testing.T) {
	w := newWorld(t, "tcp")
	w.start()
	c := w.customClient("alpha", time.Second, 0)
	w.put(c, "a", "1")
	id, err := RegionOf("alpha")
	require.NoError(t, err)
	held, hold := make(chan struct{}), make(chan struct{})
	go w.primary.tables[id].memory.Update(func([]byte) { close(held); <-hold })
	<-held
	_, err = c.from(w.context(), 0, "a")
	require.ErrorIs(t, err, rma.ErrTimeout)
	got, err := c.Get(w.context(), []byte("a"))
	require.NoError(t, err)
	require.Equal(t, "1", string(got))
	close(hold)
}

// TestReplicasDiffer: a backup is refused if its tenants, or the sizes of their memory, differ from the primary's. The
// primary's changes would be impossible there, or be made where no client finds them.
func TestReplicasDiffer(t *testing.T) {
	for _, differ := range []func(w *world){
		func(w *world) { w.tenants = w.tenants[:1] },
		func(w *world) { w.tenants = []string{"alpha", "gamma"} },
		func(w *world) { w.shape.Buckets *= 4 },
		func(w *world) { w.shape.Values *= 2 },
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, "pipe")
			tenants, shape := w.tenants, w.shape
			differ(w)
			w.startBackup()
			w.tenants, w.shape = tenants, shape
			w.startPrimary()
			_, err := dialBackup(w.context(), w.primary)
			for i := 0; i < 10 && !strings.Contains(err.Error(), "-tenants, -buckets and -values"); i++ {
				time.Sleep(300 * time.Millisecond) // the primary dials, too, and each takes the place of the other
				_, err = dialBackup(w.context(), w.primary)
			}
			require.ErrorContains(t, err, "-tenants, -buckets and -values")
			require.False(t, w.primary.serving())
			w.kill(w.backup)
			w.startBackup()
			w.settle()
		})
	}
}

// TestWhyThereIsNoConnection: the reason is logged once, however often the primary tries to reach the backup, and again
// after a connection.
func TestWhyThereIsNoConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.startBackup()
		open := func(tenants int) *bytes.Buffer {
			log := new(bytes.Buffer)
			cfg := w.config("primary", 0)
			cfg.Backup, cfg.Tenants = w.addrs[1], cfg.Tenants[:tenants]
			cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			var err error
			w.primary, err = Open(w.context(), cfg)
			require.NoError(t, err)
			return log
		}
		log := open(1)
		time.Sleep(20 * time.Second)
		w.kill(w.primary)
		require.Equal(t, 1, strings.Count(log.String(), "no connection to the backup"), log)
		require.Contains(t, log.String(), "other tenants")

		log = open(2)
		for range 2 {
			w.settle()
			w.kill(w.backup)
			time.Sleep(20 * time.Second)
			w.startBackup()
		}
		w.settle()
		w.kill(w.primary)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 4, "the connection was lost and there is no backup, twice")
		require.Equal(t, lines[1][strings.Index(lines[1], "level"):], lines[3][strings.Index(lines[3], "level"):])
	})
}

// TestTenantsOfAFile: tenants and the number of index buckets stay. A file with changes that others make impossible is
// refused, and stays as it is.
func TestTenantsOfAFile(t *testing.T) {
	for want, differ := range map[string]func(w *world){
		"not configured":  func(w *world) { w.tenants = w.tenants[1:] },
		"have this entry": func(w *world) { w.shape.Buckets *= 2 },
		"no such entry":   func(w *world) { w.shape.Buckets /= 2 },
	} {
		stored(t, func(t *testing.T, w *world, c *Client) {
			for i := range 30 {
				w.put(c, keyOf(i), "v")
			}
			require.NoError(t, c.Close())
			w.kill(w.primary)
			w.kill(w.backup)
			tenants, shape := w.tenants, w.shape
			differ(w)
			for _, name := range []string{"primary", "backup"} {
				before, err := os.ReadFile(w.path(name))
				require.NoError(t, err)
				cfg := w.config(name, 0)
				if name == "primary" {
					cfg.Backup = "none"
				}
				_, err = Open(w.context(), cfg)
				require.ErrorContains(t, err, want)
				after, err := os.ReadFile(w.path(name))
				require.NoError(t, err)
				require.True(t, bytes.Equal(before, after), name)
			}
			w.tenants, w.shape, w.addrs = tenants, shape, [2]string{}
			w.start()
			w.holds(w.client("alpha"), keyOf(0), "v")
		})
	}
}

// TestVersionsGoOn: even if the latest changes were Deletes, which a compacted log does not contain.
func TestVersionsGoOn(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		w.put(c, "b", "1")
		require.NoError(t, c.Delete(w.context(), []byte("b")))
		require.NoError(t, c.Close())
		require.EqualValues(t, 3, w.primary.version)
		require.NoError(t, w.primary.writer.compact(w.context()), "the writer has nothing to do")
		c = w.restartPrimary()
		require.EqualValues(t, 3, w.primary.version)
		w.holds(c, "a", "1")
		w.lacks(c, "b")
	})
}

// TestPutWhoseContextEnds: it does not disturb another goroutine's Put.
func TestPutWhoseContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		c, release, ended := w.halfPut("2")
		over, cancel := context.WithCancel(w.context())
		cancel()
		for range 50 { // if a place is free and the context has ended, either is taken
			require.ErrorIs(t, c.Put(over, []byte("b"), []byte("1")), context.Canceled)
		}
		release()
		require.NoError(t, <-ended)
		w.holds(c, "a", "2")
	})
}

// TestConnectionLostInACompaction: the change for which the log was too full has no effect. The backup gets the next
// generation when the connection is back.
func TestConnectionLostInACompaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.held(stageDurable)
		w.start()
		c := w.client("alpha")
		value := strings.Repeat("x", 60_000)
		for w.primary.log.room() >= uint64(len(value))+1000 {
			w.put(c, "a", value)
		}
		w.put(c, "b", "1")
		release := w.stopHere()
		require.ErrorIs(t, c.Put(w.context(), []byte("a"), []byte(value+"y")), ErrUnavailable)
		require.EqualValues(t, 2, w.primary.log.mark.generation)
		release()
		w.settle()
		w.holds(c, "a", value)
		w.holds(c, "b", "1")
		w.put(c, "a", "2")
		c = w.restartPrimary()
		w.holds(c, "a", "2")
		w.holds(c, "b", "1")
	})
}
