package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// scribble changes octets of a replica's file.
func (w *world) scribble(name string, at int64, b []byte) {
	w.Helper()
	f, err := os.OpenFile(w.path(name), os.O_RDWR, 0)
	require.NoError(w, err)
	_, err = f.WriteAt(b, at)
	require.NoError(w, err)
	require.NoError(w, f.Close())
}

// open returns the error of a replica that must be refused.
func (w *world) open(cfg *Config) error {
	w.Helper()
	r, err := Open(w.context(), cfg)
	if err == nil {
		w.kill(r)
	}
	return err
}

// TestTornBatch: a batch that the primary did not write completely is gone. Its remains after the first damage do not
// join up with later changes.
func TestTornBatch(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, c.Close())
		end := w.primary.log.mark
		w.kill(w.primary)
		id, err := RegionOf("alpha")
		require.NoError(t, err)
		var torn, rest []byte
		x := change{tenant: id, version: 2, entry: 60, block: 512, key: []byte("x"), value: []byte("one")}
		torn = x.append(torn, end.generation)
		y := change{tenant: id, version: 3, entry: 60, block: 513, key: []byte("y"), value: []byte("two")}
		rest = y.append(rest, end.generation)
		torn[len(torn)-9] ^= 1
		w.scribble("primary", w.primary.log.at(end), append(torn, rest...))
		w.startPrimary()
		w.settle()
		require.Equal(t, end, w.primary.log.mark)
		c = w.client("alpha")
		w.put(c, "z", "one") // as long as the torn change
		w.lacks(c, "x")
		w.lacks(c, "y")
		require.NoError(t, c.Close())
		c = w.restartPrimary()
		w.lacks(c, "y")
		w.holds(c, "z", "one")
		w.holds(c, "a", "1")
	})
}

// TestCompactionThatWasNotFinished: the primary ended after it had written the changes that count, and before they
// became its log. Their remains do not join up with the changes written there the next time.
func TestCompactionThatWasNotFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.half = (4*maxChange + 7) &^ 7
		w.start()
		c := w.client("alpha")
		value := strings.Repeat("x", 5000)
		for i := range 10 {
			w.put(c, keyOf(i), value)
		}
		next := mark{generation: w.primary.log.mark.generation + 1}
		var left []byte
		for _, k := range w.primary.writer.counting() {
			left = k.append(left, next.generation)
		}
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.scribble("primary", w.primary.log.at(next), left)
		w.startPrimary()
		w.settle()
		c = w.client("alpha")
		for i := 5; i < 10; i++ {
			require.NoError(t, c.Delete(w.context(), []byte(keyOf(i))))
		}
		for w.primary.log.mark.generation < next.generation {
			w.put(c, keyOf(0), value)
		}
		require.Less(t, w.primary.log.mark.tail, uint64(len(left)))
		require.NoError(t, c.Close())
		c = w.restartPrimary()
		for i := range 10 {
			if i < 5 {
				w.holds(c, keyOf(i), value)
			} else {
				w.lacks(c, keyOf(i))
			}
		}
	})
}

// TestFileOfABackupThatGotNothingWhole: the first primary ended while it copied its log to that file. A primary started
// with the file takes none of it, however long its own log becomes.
func TestFileOfABackupThatGotNothingWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		id, err := RegionOf("alpha")
		require.NoError(t, err)
		half := &logFile{half: w.half}
		var left []byte
		for i := range 2 {
			key := []byte(keyOf(i))
			x := change{tenant: id, version: uint64(i + 1), entry: w.shape.home(hashOf(key))*bucketEntries + 3, block: uint32(i), key: key, value: []byte("1")}
			left = x.append(left, 1)
		}
		require.NoError(t, os.WriteFile(w.path("primary"), make([]byte, half.at(mark{generation: 1})), 0o600))
		w.scribble("primary", half.at(mark{generation: 1}), left)
		w.start()
		c := w.client("alpha")
		w.put(c, "key 2", "2") // as long as a change that is left there
		require.NoError(t, c.Close())
		c = w.restartPrimary()
		w.lacks(c, keyOf(1))
		w.holds(c, "key 2", "2")
	})
}

// TestPrimaryWithTheFileOfABackup: it reads the file up to the mark, since what follows may be another primary's.
func TestPrimaryWithTheFileOfABackup(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, c.Close())
		w.kill(w.primary)
		end := w.backup.log.mark
		w.kill(w.backup)
		id, err := RegionOf("alpha")
		require.NoError(t, err)
		x := change{tenant: id, version: 2, entry: w.shape.home(hashOf([]byte("left"))) * bucketEntries, block: 9, key: []byte("left"), value: []byte("1")}
		half := &logFile{half: w.half}
		w.scribble("backup", half.at(end), x.append(nil, end.generation))
		require.NoError(t, os.Rename(w.path("backup"), w.path("primary")))
		w.start()
		c = w.client("alpha")
		w.holds(c, "a", "1")
		w.lacks(c, "left")
	})
}

// TestWrittenButNotSent: the backup, when it is back, gets what the primary had made durable before its end. No client
// has seen it before.
func TestWrittenButNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		c, release, ended := w.halfPut("2")
		w.primary.stop()
		release()
		w.kill(w.primary)
		require.ErrorIs(t, <-ended, ErrUncertain)
		got, err := c.Get(w.context(), []byte("a"))
		require.NoError(t, err)
		require.Equal(t, "1", string(got))
		w.startPrimary()
		w.settle()
		require.NoError(t, c.Close())
		w.holds(w.client("alpha"), "a", "2")
	})
}

// until waits until ok returns true.
func (w *world) until(ok func() bool) error {
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// TestDamagedBackup: the mark says how far the log is durable, so that damage before it is an error.
func TestDamagedBackup(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.kill(w.backup)
		w.scribble("backup", w.backup.log.at(mark{generation: 1})+20, []byte{0xff})
		_, err := Open(w.context(), w.config("backup", 1))
		require.ErrorContains(t, err, "damaged")

		w.scribble("backup", 0, []byte{0xf0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0})
		_, err = Open(w.context(), w.config("backup", 1))
		require.ErrorContains(t, err, "another size")
	})
}

// TestMarkWithoutAGeneration: such a mark is damaged. It is not the mark of a new file, which a primary would clear.
func TestMarkWithoutAGeneration(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.kill(w.backup)
		for _, name := range []string{"primary", "backup"} {
			good, err := os.ReadFile(w.path(name))
			require.NoError(t, err)
			tail := markOf(binary.NativeEndian.Uint64(good)).tail
			w.scribble(name, 0, binary.NativeEndian.AppendUint64(nil, mark{tail: tail}.word()))
			damaged, err := os.ReadFile(w.path(name))
			require.NoError(t, err)
			cfg := w.config(name, 0)
			for _, cfg.Backup = range []string{"", "none"} { // the backup may become the primary
				require.ErrorContains(t, w.open(cfg), "the mark of the log is damaged")
			}
			after, err := os.ReadFile(w.path(name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(damaged, after), name)
		}
	})
}

// TestFileThatWasCut: a file that ends before its log is an error, and is not extended.
func TestFileThatWasCut(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.kill(w.backup)
		for _, size := range []int64{logStart - 1, headLen, halfAt, nameAt, 7} {
			require.NoError(t, os.Truncate(w.path("backup"), size))
			require.ErrorContains(t, w.open(w.config("backup", 0)), fmt.Sprintf("was cut: %d octets", size))
			info, err := os.Stat(w.path("backup"))
			require.NoError(t, err)
			require.Equal(t, size, info.Size())
		}
	})
}

// TestOtherHalf: a half of the log other than the one that a file was made with is refused, and the file stays as it is.
// For a file whose head does not record the half, its size shows it.
func TestOtherHalf(t *testing.T) {
	least := uint64((4*maxChange + 7) &^ 7)
	for generation := range uint32(3) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, "pipe")
			w.half = 2 * least
			w.start()
			c := w.client("alpha")
			w.put(c, "a", "1")
			for w.primary.log.mark.generation <= generation {
				w.put(c, "b", strings.Repeat("b", 60_000))
			}
			require.NoError(t, c.Close())
			w.kill(w.primary)
			w.kill(w.backup)
			for _, older := range []bool{false, true} {
				for _, name := range []string{"primary", "backup"} {
					if older {
						w.scribble(name, halfAt, make([]byte, 8))
					}
					before, err := os.ReadFile(w.path(name))
					require.NoError(t, err)
					for _, half := range []uint64{least, 4 * least} {
						cfg := w.config(name, 0)
						cfg.LogHalf = half
						if name == "primary" {
							cfg.Backup = "none"
						}
						_, err = Open(w.context(), cfg)
						require.ErrorContains(t, err, fmt.Sprintf("-log-half %d", w.half))
						after, err := os.ReadFile(w.path(name))
						require.NoError(t, err)
						require.True(t, bytes.Equal(before, after), "%s, generation %d, half %d, older %t", name, generation+1, half, older)
					}
				}
			}
			w.addrs = [2]string{}
			w.start()
			w.holds(w.client("alpha"), "a", "1")
		})
	}
}

// TestLogWithoutItsBeginning: every generation but the first begins with a change, so that one without any is not an
// empty log.
func TestLogWithoutItsBeginning(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, w.primary.writer.compact(w.context()), "the writer has nothing to do")
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.scribble("primary", w.primary.log.at(mark{generation: 2}), []byte{0xff})
		cfg := w.config("primary", 0)
		cfg.Backup = w.addrs[1]
		_, err := Open(w.context(), cfg)
		require.ErrorContains(t, err, "generation 2 ends at octet 0,")
	})
}

// TestDamageToWhatAGenerationBeganWith: the damage is not taken for the end of the primary's log. The backup may have
// the complete generation before, and would get the remains instead.
func TestDamageToWhatAGenerationBeganWith(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		for i := range 4 {
			w.put(c, keyOf(i), "acknowledged")
		}
		before, err := os.ReadFile(w.path("backup"))
		require.NoError(t, err)
		require.NoError(t, w.primary.writer.compact(w.context()), "the writer has nothing to do")
		require.NoError(t, c.Close())
		end := w.primary.log.mark
		w.kill(w.primary)
		w.kill(w.backup)
		require.NoError(t, os.WriteFile(w.path("backup"), before, 0o600))
		w.startBackup()

		cfg := w.config("primary", 0)
		cfg.Backup = w.addrs[1]
		log, err := os.ReadFile(w.path("primary"))
		require.NoError(t, err)
		for tail := uint64(0); tail < end.tail; tail += 5 {
			at := w.primary.log.at(mark{end.generation, tail})
			w.scribble("primary", at, []byte{^log[at]})
			require.ErrorContains(t, w.open(cfg), "within what it has begun with", "octet %d", tail)
			w.scribble("primary", at, log[at:at+1])
		}
		w.startPrimary()
		w.settle()
		c = w.client("alpha")
		for i := range 4 {
			w.holds(c, keyOf(i), "acknowledged")
		}
	})
}

// TestLogOfBeforeItsLengthWasWritten: a log without its length is read as earlier versions read it.
func TestLogOfBeforeItsLengthWasWritten(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		require.NoError(t, w.primary.writer.compact(w.context()), "the writer has nothing to do")
		all := w.primary.writer.counting()
		require.NoError(t, c.Close())
		w.kill(w.primary)
		w.kill(w.backup)
		all[0].value = nil
		var older []byte
		for _, k := range all {
			older = k.append(older, 2)
		}
		start, end := mark{generation: 2}, mark{2, uint64(len(older))}
		for _, name := range []string{"primary", "backup"} {
			w.scribble(name, w.primary.log.at(start), append(older, make([]byte, 8)...))
		}
		w.scribble("backup", 0, binary.NativeEndian.AppendUint64(nil, end.word()))
		w.start()
		require.Equal(t, end, w.primary.log.mark)
		w.holds(w.client("alpha"), "a", "1")
	})
}

// TestOtherHistories: a backup gets what it lacks of this log, and refuses another log.
func TestOtherHistories(t *testing.T) {
	ours := &logFile{name: [nameLen]byte{1}, mark: mark{5, 800}}
	for _, c := range []struct {
		mark mark
		name byte
		from mark
		err  string
	}{
		{mark{0, 0}, 0, mark{5, 0}, ""},
		{mark{4, 960}, 1, mark{5, 0}, ""},
		{mark{5, 0}, 1, mark{5, 0}, ""},
		{mark{5, 480}, 1, mark{5, 480}, ""},
		{mark{5, 800}, 1, mark{5, 800}, ""},
		{mark{5, 480}, 2, mark{}, "another store"},
		{mark{5, 808}, 1, mark{}, "does not have"},
		{mark{6, 0}, 1, mark{}, "does not have"},
		{mark{3, 0}, 1, mark{}, "does not have"},
	} {
		w := welcome{mark: c.mark, name: [nameLen]byte{c.name}}
		from, err := w.missing(ours)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v", c.mark)
			continue
		}
		require.NoError(t, err, "%v", c.mark)
		require.Equal(t, c.from, from)
	}
}

// TestSecondConnectionOfThePrimary: it ends the first connection, and continues the log where the first one left it.
func TestSecondConnectionOfThePrimary(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		first := w.backup.session
		l, err := dialBackup(w.context(), w.primary)
		require.NoError(t, err)
		<-first.qp.Done()
		require.Equal(t, w.primary.log.mark, l.theirs.mark)
		require.Equal(t, w.primary.log.name, l.theirs.name)
		l.close()
		w.settle()
		require.NoError(t, w.until(func() bool { return c.Put(w.quick(), []byte("a"), []byte("2")) == nil }))
		w.holds(c, "a", "2")
	})
}

// TestPrimaryThatDoesNotProveItself: it ends no connection. It may be a replay of a recorded Request.
func TestPrimaryThatDoesNotProveItself(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		first := w.backup.session
		auth, err := authAs(replicatorName, replicatorKey(testMaster))
		require.NoError(t, err)
		silent := errors.New("no third message")
		_, err = w.primary.rnic.Dial(w.context(), w.network, w.addrs[1], &iwarp.QPConfig{
			PD: w.primary.pd, Auth: auth, PrivateData: []byte{byte(useReplicate)}, Commit: &iwarp.CommitOptions{Negotiate: true},
			SetupTrace: &iwarp.SetupTrace{Enter: func(_ context.Context, at iwarp.SetupStage) error {
				if at == iwarp.StageConfirm {
					return silent
				}
				return nil
			}},
		})
		require.ErrorIs(t, err, silent)
		w.settle()
		require.Same(t, first, w.backup.session)
		require.NoError(t, first.qp.Err())
		w.put(c, "a", "2")
	})
}

// TestMarkThatIsNotDurable: nothing after the last durable mark is shown. The disk failed to make the mark durable, and
// after a crash it may be another mark.
func TestMarkThatIsNotDurable(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		w.put(c, "a", "1")
		w.kill(w.primary)
		log := w.backup.log
		durable := log.mark
		id, err := RegionOf("alpha")
		require.NoError(t, err)
		x := change{tenant: id, version: 2, entry: w.shape.home(hashOf([]byte("x")))*bucketEntries + 3, block: 512, key: []byte("x"), value: []byte("one")}
		b := x.append(nil, durable.generation)
		_, err = log.file.WriteAt(b, log.at(durable))
		require.NoError(t, err)
		require.NoError(t, log.file.Flush(w.context(), log.at(durable), int64(len(b))))
		next := mark{durable.generation, durable.tail + uint64(len(b))}
		move := func() error {
			_, err := log.file.WriteAt(binary.NativeEndian.AppendUint64(nil, next.word()), 0)
			require.NoError(t, err)
			return log.file.Flush(w.context(), 0, nameAt)
		}
		require.NoError(t, os.Truncate(w.path("backup"), log.file.Size()-1))
		require.ErrorIs(t, move(), syscall.EIO)
		require.NoError(t, os.Truncate(w.path("backup"), log.file.Size()))

		s := &replicated{r: w.backup}
		require.NoError(t, s.catchUp(w.context()))
		require.Equal(t, durable, log.mark)
		_, err = c.from(w.context(), 1, "x")
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, move())
		require.NoError(t, s.catchUp(w.context()))
		require.Equal(t, next, log.mark)
		got, err := c.from(w.context(), 1, "x")
		require.NoError(t, err)
		require.Equal(t, "one", got)
	})
}

// TestChangeThatTheDiskRefuses: the primary ends, and may find the change in its log when it is back.
func TestChangeThatTheDiskRefuses(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		require.NoError(t, c.Close())
		id, err := RegionOf("alpha")
		require.NoError(t, err)
		require.NoError(t, os.Truncate(w.path("primary"), w.primary.log.file.Size()-1))
		ended := make(chan error, 1)
		put := change{tenant: id, key: []byte("a"), value: []byte("1")}
		require.NoError(t, w.primary.writer.submit(w.primary.tables[id], put, func(err error) { ended <- err }))
		require.ErrorIs(t, <-ended, ErrUncertain)
		require.ErrorIs(t, w.primary.Err(), syscall.EIO)
		w.holds(w.restartPrimary(), "a", "1")
	})
}

// TestLogIsFull: a Put without room fails, and a Delete makes room.
func TestLogIsFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.half = (4*maxChange + 7) &^ 7
		w.start()
		c := w.client("alpha")
		long := strings.Repeat("x", 50_000)
		var err error
		n := 0
		for ; err == nil; n++ {
			err = c.Put(w.context(), []byte(keyOf(n)), []byte(long))
		}
		require.ErrorIs(t, err, errLogFull)
		require.Greater(t, n, 3)
		require.NoError(t, c.Delete(w.context(), []byte(keyOf(0))))
		w.put(c, keyOf(n), long)
		w.holds(c, keyOf(n), long)
		for i := range n + 1 {
			require.NoError(t, c.Delete(w.context(), []byte(keyOf(i))))
		}
		require.Zero(t, w.primary.writer.used)
	})
}

func TestOpenRefuses(t *testing.T) {
	w := newWorld(t, "pipe")
	for what, change := range map[string]func(*Config){
		"half of a log": func(c *Config) { c.LogHalf = 100 },
		fmt.Sprintf("%d are possible", int64(maxHalf)): func(c *Config) { c.LogHalf = 1 << 31 },
		"two tenants": func(c *Config) { c.Tenants = append(c.Tenants, c.Tenants[0]) },
		"buckets":     func(c *Config) { c.Tenants[0].Shape.Buckets = 3 },
		"master key":  func(c *Config) { c.Master = nil },
		"a Depth of":  func(c *Config) { c.Depth = -1 },
	} {
		cfg := w.config("backup", 1)
		change(cfg)
		_, err := Open(context.Background(), cfg)
		require.ErrorContains(t, err, what)
	}
	_, err := Dial(context.Background(), &ClientConfig{Network: "pipe", Primary: "no", Backup: "one", Tenant: "alpha", Key: make([]byte, MasterLen)})
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = Dial(context.Background(), &ClientConfig{Tenant: "alpha"})
	require.ErrorContains(t, err, "key of 0 octets")
	for _, depth := range []int{-1, maxDepth + 1, math.MaxInt} {
		_, err = Dial(context.Background(), &ClientConfig{Tenant: "alpha", Key: make([]byte, MasterLen), Depth: depth})
		require.ErrorContains(t, err, "a Depth of")
		_, err = OpenPipeline(context.Background(), &PipelineConfig{Tenant: "alpha", Key: make([]byte, MasterLen), Depth: depth})
		require.ErrorContains(t, err, "a Depth of")
	}
}
